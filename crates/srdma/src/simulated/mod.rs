//! The version protocol in virtual time, in tests.

mod hostile;
mod network;
mod versions;
