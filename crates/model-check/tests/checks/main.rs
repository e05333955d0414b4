//! Model checking with small bounds. `docs/model-checking.md` has larger ones.

mod aggregation;
mod commit;
mod repair;
