//! `srdma-model-check` as a command.

use std::process::{Command, Output};

fn srdma_model_check(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma-model-check"));
    command.args(arguments);
    command
}

/// What it does with a pipe that its reader has closed.
fn into_closed_pipe(arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    srdma_model_check(arguments).stdout(writer).output().expect("srdma-model-check starts")
}

#[test]
fn a_closed_pipe_ends_it_without_a_message_and_without_success() {
    let checks = ["--shape", "star2", "--packets", "1", "--losses", "0"];
    for arguments in [&["--list"][..], &checks, &[&checks[..], &["--json"]].concat()] {
        let output = into_closed_pipe(arguments);
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr)),
            (Some(1), "".into()),
            "{arguments:?}"
        );
    }
    let output = srdma_model_check(&checks).output().expect("srdma-model-check starts");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("holds"), "{output:?}");
}
