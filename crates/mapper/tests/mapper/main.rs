//! The tests of `srdma-mapper`: a fabric in virtual time that shares no code with the mapper, and a checker of its deny
//! list.

mod checker;
mod network;
mod packets;
mod runs;
