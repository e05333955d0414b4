//! Probes of paths in arbitrary octets.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::wire::probe(input));
