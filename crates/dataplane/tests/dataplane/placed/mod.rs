//! The headend of placed paths (PP-4-3, PP-4-6, PP-5.2-1, D83–D87), on the draft's Figure 1.

mod encapsulation;
mod entropy;
mod node;
mod probes;
mod signals;
mod support;
