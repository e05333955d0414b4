//! The labs in which nodes do something about congestion: `pfc`, `fast-cnp` and `wan`.

mod fast_cnp;
mod lab;
mod pfc;
mod wan;
