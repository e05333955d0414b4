//! Files of scenarios.
#![no_main]

srdma_fuzz::text_target!(scenario);
