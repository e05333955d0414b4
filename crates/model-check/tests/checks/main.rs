//! Model checking with small bounds. `docs/model-checking.md` has larger ones.

mod aggregation;
mod command;
mod commit;
mod repair;
