//! The lab in which nodes do something about congestion: `pfc`.

mod lab;
mod pfc;
