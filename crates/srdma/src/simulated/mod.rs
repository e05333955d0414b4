//! The version protocol in virtual time, in tests.

mod hostile;
mod late;
mod network;
mod pauses;
mod regions;
mod versions;
