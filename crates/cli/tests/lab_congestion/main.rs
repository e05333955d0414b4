//! The labs in which nodes do something about congestion: `pfc` and `fast-cnp`.

mod fast_cnp;
mod lab;
mod pfc;
