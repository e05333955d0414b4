//! Messages between the processes of a host that share a receiver.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::ranks(input));
