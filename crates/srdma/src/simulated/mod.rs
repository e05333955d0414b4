//! The version protocol in virtual time, in tests.

mod hostile;
mod late;
mod network;
mod pauses;
mod rails;
mod regions;
mod silence;
mod versions;
