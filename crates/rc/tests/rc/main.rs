//! Tests of the endpoint from outside: packets in, packets out.

mod allocation;
mod dcqcn;
mod dcqcn_plus;
mod deregistration;
mod detour;
mod fast_cnp;
mod golden;
mod group;
mod hostile;
mod hpcc;
mod net;
mod nscc;
mod rate;
mod requester;
mod responder;
mod selective_repeat;
mod support;
mod trace;
mod transfer;
mod trimming;
