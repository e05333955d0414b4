//! What of the command line is also driven by something else than its user.

pub mod decode;
pub mod output;
pub mod units;
