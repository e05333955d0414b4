//! The aggregation of responses: its rules one by one, against a model, and in random trees.

mod model;
mod path_loads;
mod rules;
mod stall;
mod trees;
