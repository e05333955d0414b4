//! `node.toml`.
#![no_main]

srdma_fuzz::text_target!(configuration);
