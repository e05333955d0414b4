//! An RC endpoint under arbitrary packets.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::rc(input));
