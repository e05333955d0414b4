//! Programs that the lab runs to their end.

use crate::error::{LabError, Result};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

/// Runs a command line, whose words hold no spaces, and gives its output.
pub(crate) fn run(line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    run_words(&words)
}

/// Runs a command, given by its words, and gives its output.
pub(crate) fn run_words(words: &[&str]) -> Result<String> {
    let output = start(words)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(LabError::Command {
        line: words.join(" "),
        status: output.status,
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn start(words: &[&str]) -> Result<Output> {
    let (program, arguments) = words.split_first().unwrap_or((&"", &[]));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C is for the lab, which waits for what it has begun.
    command.process_group(0);
    let output = command.spawn().and_then(Child::wait_with_output);
    output.map_err(|error| LabError::Start { line: words.join(" "), error })
}

/// Splits a command line of a topology file into words; single or double quotes keep spaces together.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (_, None) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words("ip -6  route add ::/0"), ["ip", "-6", "route", "add", "::/0"]);
        assert_eq!(words("sh -c 'a \"b\" c' \"\" d"), ["sh", "-c", "a \"b\" c", "", "d"]);
    }

    /// A daemon that a command starts has the command's mask and actions, and is ended by SIGTERM.
    #[test]
    fn commands_get_the_signals_that_the_lab_handles() {
        let _interrupt = Interrupt::listen().unwrap();
        let status = run("cat /proc/self/status").unwrap();
        for line in ["SigBlk:\t0000000000000000\n", "SigCgt:\t0000000000000000\n"] {
            assert!(status.contains(line), "{status}");
        }
    }

    #[test]
    fn a_failure_names_the_command_and_its_output() {
        let error = run("ls --no-such-option").unwrap_err().to_string();
        assert!(error.starts_with("`ls --no-such-option` failed with exit status: 2: "), "{error}");
        assert!(error.contains("no-such-option"), "{error}");
        let error = run("no-such-program 1").unwrap_err().to_string();
        assert!(error.starts_with("cannot start `no-such-program 1`: "), "{error}");
    }
}
