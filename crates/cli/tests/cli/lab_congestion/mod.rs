//! The labs in which nodes do something about congestion: `pfc`, `fast-cnp`, `trimming` and `wan`.

mod fast_cnp;
mod lab;
mod pfc;
mod trimming;
mod wan;
