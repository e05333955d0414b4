//! Man pages, completions and the version.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

fn srdma(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_srdma")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The names of commands in a help text.
fn commands(help: &str) -> Vec<&str> {
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

#[test]
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let man = directory.path().join("man");
    srdma(&["generate", "man", man.to_str().unwrap()]);
    let help = srdma(&["--help"]);
    let all = commands(&help);
    assert!(all.contains(&"node") && all.contains(&"generate"), "{all:?}");
    for command in all {
        let page = fs::read_to_string(man.join(format!("srdma-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
    }
    let place = fs::read_to_string(man.join("srdma-plan-place.1")).unwrap();
    assert!(place.contains("\\-\\-fabric"), "options of a command below a command");
    assert_eq!(fs::read_dir(&man).unwrap().filter(|page| page.as_ref().unwrap().path().ends_with("help.1")).count(), 0);
}

/// Completions of the script in the shell itself.
#[test]
fn bash_completes_commands() {
    let mut bash = Command::new("bash")
        .args(["--noprofile", "--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let script = srdma(&["generate", "completions", "bash"]);
    let ask = "COMP_WORDS=(srdma pl) COMP_CWORD=1\n_srdma srdma pl srdma\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    bash.stdin.take().unwrap().write_all(format!("{script}\n{ask}").as_bytes()).unwrap();
    assert_eq!(String::from_utf8(bash.wait_with_output().unwrap().stdout).unwrap(), "plan\n");
}

#[test]
fn the_version_names_the_build() {
    let version = srdma(&["--version"]);
    let build = version.strip_prefix(&format!("srdma {} (", env!("CARGO_PKG_VERSION"))).unwrap();
    assert!(build.ends_with(")\n") && build.len() > 3, "{version}");
}

#[test]
fn refusals_name_the_error() {
    let run = |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_srdma")).args(arguments).output().unwrap();
    let refused = run(&["generate", "man", "/proc/absent/man"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/proc/absent/man"));
    let refused = run(&["generate", "completions", "tcsh"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("[possible values: bash"));
}
