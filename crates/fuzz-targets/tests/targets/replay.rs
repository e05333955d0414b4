//! Replay of the fuzzer's corpora, which lie in `fuzz/corpus`, a file for each target; an input that has made a target
//! fail stays in it.

use srdma_fuzz_targets::{TARGETS, corpus};
use std::path::PathBuf;

fn file_of(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/corpus/{target}.bin"))
}

#[test]
fn every_corpus_is_replayed() {
    for (name, target) in TARGETS {
        let inputs = corpus::read(&file_of(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        let mut run = target();
        for input in &inputs {
            run(input);
        }
    }
}
