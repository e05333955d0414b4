//! Corpora between the fuzzer's form and the repository's.
//!
//! ```sh
//! cargo run -p srdma-fuzz-targets --example corpus -- pack DIRECTORY FILE    # a file each → one file
//! cargo run -p srdma-fuzz-targets --example corpus -- unpack FILE DIRECTORY  # one file → a file each
//! cargo run -p srdma-fuzz-targets --example corpus -- reach DIRECTORY        # what the inputs of `node` reach
//! ```

use srdma_fuzz_targets::{LIFETIME, NodeTarget, corpus};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["pack", from, to] => corpus::read(Path::new(from)).and_then(|inputs| std::fs::write(to, corpus::pack(inputs))),
        ["unpack", from, to] => unpack(Path::new(from), Path::new(to)),
        ["reach", from] => corpus::read(Path::new(from)).map(|inputs| reach(&inputs)),
        _ => Err(std::io::Error::other("expected pack DIRECTORY FILE, unpack FILE DIRECTORY or reach DIRECTORY")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", arguments.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn unpack(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for (number, input) in corpus::read(from)?.iter().enumerate() {
        std::fs::write(to.join(format!("{number:06}")), input)?;
    }
    Ok(())
}

/// Prints what the nodes have counted, and what they have never.
fn reach(inputs: &[Vec<u8>]) {
    let mut target = NodeTarget::default();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for life in inputs.chunks(LIFETIME) {
        life.iter().for_each(|input| target.run(input));
        for (name, count) in target.counts() {
            *counts.entry(name).or_default() += count;
        }
    }
    let (frames_in, frames_out) = target.frames();
    println!("{} inputs, {frames_in} frames in, {frames_out} frames out", inputs.len());
    counts.iter().for_each(|(name, count)| println!("{count:10} {name}"));
    println!("{} of {} never", counts.values().filter(|count| **count == 0).count(), counts.len());
}
