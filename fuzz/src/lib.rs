//! What the targets of texts share.

/// A target whose inputs are texts: half of their mutations are of words and lines.
#[macro_export]
macro_rules! text_target {
    ($target:ident) => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            if seed % 2 == 0 {
                srdma_fuzz_targets::words::mutate(data, size, max_size, seed)
            } else {
                libfuzzer_sys::fuzzer_mutate(data, size, max_size)
            }
        });
        libfuzzer_sys::fuzz_target!(|input: &[u8]| srdma_fuzz_targets::$target(input));
    };
}
