//! The desired state of a node.
//!
//! A [`NodeSpec`] consists of a node's settings and its [`Entries`], ordered maps keyed by their subject (routes by
//! table and prefix, SIDs by prefix, groups by number, and so on). [`diff`] yields the commands that lead a running
//! node from one spec to another. [`Layers`] merges the entries of several owners. [`mod@file`] is the schema of
//! `node.toml`.
//!
//! Commands that a node carries out are made here and nowhere else, the two phases of a group's commit aside.

mod diff;
mod entries;
pub mod file;
mod key;
mod layers;
mod spec;

pub use diff::{DiffError, diff};
pub use entries::{Entries, LinkFacts};
pub use key::KeySpec;
pub use layers::{Layers, Owner};
pub use spec::NodeSpec;
