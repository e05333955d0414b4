//! The labs in which nodes do something about congestion: `pfc`, `fast-cnp` and `wan`.

mod fast_cnp;
mod lab;
#[path = "../own_lab/mod.rs"]
mod own_lab;
mod pfc;
mod wan;
