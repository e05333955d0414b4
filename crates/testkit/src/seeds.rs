//! The number of seeds of a test, from the environment variable `SRDMA_TEST_SEEDS`.

use std::env::{self, VarError};

const VARIABLE: &str = "SRDMA_TEST_SEEDS";

/// The number of seeds that a test runs: `default` unless the environment sets another.
///
/// # Panics
///
/// If the variable is not a number of at least 1: a test that ran its default instead, or nothing, would look as if it
/// had run what was asked for.
pub fn count(default: u64) -> u64 {
    match env::var(VARIABLE) {
        Err(VarError::NotPresent) => default,
        Err(VarError::NotUnicode(value)) => refuse(&value.to_string_lossy()),
        Ok(value) => parse(&value),
    }
}

fn parse(value: &str) -> u64 {
    value.parse().ok().filter(|count| *count > 0).unwrap_or_else(|| refuse(value))
}

fn refuse(value: &str) -> ! {
    panic!("{VARIABLE}: expected a number of at least 1, found {value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic;

    #[test]
    fn only_numbers_of_at_least_1_are_accepted() {
        assert_eq!([parse("1"), parse("40"), parse("20000")], [1, 40, 20_000]);
        for wrong in ["", "0", "-1", "1e3", "5_000", "40 ", "many"] {
            let refused = panic::catch_unwind(|| parse(wrong)).expect_err("it is no number of seeds");
            let text = refused.downcast::<String>().expect("a text");
            assert_eq!(*text, format!("SRDMA_TEST_SEEDS: expected a number of at least 1, found {wrong:?}"));
        }
    }
}
