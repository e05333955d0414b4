//! Requests to a controller, times and restarts.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::requests(input));
