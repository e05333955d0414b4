//! Parameters of conformance profiles.
#![no_main]

srdma_fuzz::text_target!(parameters);
