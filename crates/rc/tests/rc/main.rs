//! Tests of the endpoint from outside: packets in, packets out.

mod golden;
mod group;
mod hostile;
mod net;
mod requester;
mod responder;
mod support;
mod transfer;
