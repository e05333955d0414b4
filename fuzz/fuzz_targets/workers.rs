//! A node of one worker and a node of three, which must behave alike.
#![no_main]

use srdma_fuzz_targets::WorkersTarget;
use std::cell::RefCell;

thread_local! {
    static TARGET: RefCell<WorkersTarget> = RefCell::default();
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET.with_borrow_mut(|target| target.run(input)));
