//! Storms: very many small networks under every fault at once, each from a seed, each checked.

mod address;
mod agenda;
mod agent;
pub mod attack;
mod channel;
mod cut;
mod dice;
mod events;
mod faults;
mod flow;
mod forge;
mod generate;
mod judge;
#[cfg(test)]
mod judge_tests;
pub mod line;
mod membership;
pub mod outcome;
pub mod runner;
pub mod scale;
pub mod schedule;
pub mod shrink;
mod site;
pub mod summary;
pub mod validity;
pub mod world;
