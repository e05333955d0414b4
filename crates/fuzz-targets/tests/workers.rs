//! Random scripts for a node of one worker and one of three.

use srdma_fuzz_targets::WorkersTarget;
use srdma_testkit::random::Random;
use srdma_testkit::seeds;

/// Scripts of each seed.
const SCRIPTS: usize = 5_000;

/// Octets of a script, at most.
const OCTETS: u64 = 600;

#[test]
fn a_node_of_three_workers_behaves_as_one_of_one_worker() {
    for seed in 0..seeds::count(2) {
        let mut random = Random::new(seed);
        let mut target = WorkersTarget::default();
        for _ in 0..SCRIPTS {
            let len = random.below(OCTETS);
            let script: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            target.run(&script);
        }
        let (frames_in, handed_over) = target.frames();
        assert!(frames_in > 10_000, "{frames_in} frames");
        assert!(handed_over > 1_000, "of {frames_in} frames {handed_over} were handed over");
    }
}
