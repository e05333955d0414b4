//! The labs in which nodes do something about congestion: `pfc`, `fast-cnp`, `group-hpcc`, `trimming` and `wan`.

mod fast_cnp;
mod group_hpcc;
mod lab;
mod pfc;
mod trimming;
mod wan;
