//! The cluster in virtual time: default seeds, known findings, and safeguards.

mod findings;
mod safeguards;
mod seeds;
