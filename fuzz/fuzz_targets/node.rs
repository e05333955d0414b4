//! A node with everything under arbitrary frames.
//!
//! The nodes live on from input to input, so that one that fails may need those before it. When it fails, all of its
//! life is written to the file that `SRDMA_FUZZ_HISTORY` names, or `node-history.bin`, as a corpus in one file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srdma_fuzz_targets::{LIFETIME, NodeTarget};
use std::cell::RefCell;

#[derive(Default)]
struct History {
    octets: Vec<u8>,
    inputs: usize,
}

thread_local! {
    static TARGET: RefCell<NodeTarget> = RefCell::default();
    static HISTORY: RefCell<History> = RefCell::default();
}

fn write_history_on_panic() {
    let earlier = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = std::env::var_os("SRDMA_FUZZ_HISTORY").unwrap_or("node-history.bin".into());
        let written = HISTORY.with_borrow(|history| std::fs::write(&file, &history.octets));
        eprintln!("history: {}: {written:?}", file.display());
        earlier(panic);
    }));
}

fuzz_target!(init: write_history_on_panic(), |input: &[u8]| {
    HISTORY.with_borrow_mut(|history| {
        if history.inputs == LIFETIME {
            history.inputs = 0;
            history.octets.clear();
        }
        history.inputs += 1;
        history.octets.extend((input.len() as u32).to_be_bytes());
        history.octets.extend(input);
    });
    TARGET.with_borrow_mut(|target| target.run(input));
});
