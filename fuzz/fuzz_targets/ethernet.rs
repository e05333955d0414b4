//! Ethernet and 802.1Q headers.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::wire::ethernet(input));
