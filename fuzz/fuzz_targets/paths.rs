//! Files of paths, and deny lists.
#![no_main]

srdma_fuzz::text_target!(paths);
