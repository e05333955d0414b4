//! Fast CNPs: their options, and what becomes of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::wire::fast_cnp(input));
