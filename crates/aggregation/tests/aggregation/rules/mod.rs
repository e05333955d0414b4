//! The forwarding rule R1-R7 step by step, and the decisions behind it.

mod branches;
mod data;
mod expected_psns;
mod failures;
mod naks;
mod node;
mod readings;
