//! Connection management between a client and listening receivers.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::cm_exchange(input));
