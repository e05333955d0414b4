//! The cluster in virtual time: default seeds, known findings, and the checks themselves.

mod findings;
mod seeds;
