//! A PE under arbitrary notifications, and a router whose queues make some.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::notification(input));
