//! A headend of placed paths under arbitrary packets, signals, times and paths.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::headend(input));
