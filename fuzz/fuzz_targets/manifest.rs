//! The messages around a version of buffers.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::manifest(input));
