//! The OSPFv3 speaker.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::ospf(input));
