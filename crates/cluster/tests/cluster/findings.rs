//! Schedules whose findings were mended. No seed may show one any more.

use srdma_cluster::token::ReplayToken;
use srdma_cluster::world;

/// Each schedule has shown what the comment above it says.
#[test]
fn mended_findings_do_not_come_back() {
    let tokens = include_str!("mended.txt").lines().filter(|line| !line.starts_with('#'));
    for token in tokens {
        let schedule = token.parse::<ReplayToken>().expect("a token").schedule();
        let violations = world::run(&schedule).violations;
        assert!(violations.is_empty(), "{token}: {violations:#?}");
    }
}
