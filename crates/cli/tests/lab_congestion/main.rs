//! The labs in which nodes do something about congestion: `pfc` and `fast-cnp`.

mod fast_cnp;
mod lab;
#[path = "../own_lab/mod.rs"]
mod own_lab;
mod pfc;
