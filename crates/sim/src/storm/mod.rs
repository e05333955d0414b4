//! Storms: very many small networks under every fault at once, each from a seed, each checked.

pub mod outcome;
pub mod schedule;
