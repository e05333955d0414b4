//! The IPv6 header, extension headers and options.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::wire::ipv6(input));
