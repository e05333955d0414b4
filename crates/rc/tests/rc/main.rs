//! Tests of the endpoint from outside: packets in, packets out.

mod dcqcn;
mod golden;
mod group;
mod hostile;
mod net;
mod rate;
mod requester;
mod responder;
mod support;
mod transfer;
