//! `examples/broadcast.py`, by the package of `crates/python`.

use super::{Broadcast, Network};
use srdma_testkit::built;
use std::fs;
use std::path::Path;
use std::process::Stdio;

impl Network {
    pub(super) fn has_package(&self) {
        built::python_package(&self.directory.path().join("packages"));
    }

    fn runs(&self, host: &str, name: &str, arguments: &[&str]) -> Broadcast {
        self.runs_script("examples/broadcast.py", host, name, arguments, &[])
    }

    /// A script of this repository, by Debian's interpreter and with stubs of frameworks; environment variables name an
    /// interpreter with another torch, and a directory in place of the stubs.
    pub(super) fn runs_script(
        &self,
        script: &str,
        host: &str,
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Broadcast {
        let output = self.directory.path().join(name);
        let file = fs::File::create(&output).expect("a file");
        let interpreter = std::env::var("SRDMA_TEST_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
        let mut command = self.namespace(host).command(&interpreter);
        self.access.set(&mut command);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let stubs = std::env::var_os("SRDMA_TEST_STUBS")
            .map_or_else(|| root.join("crates/python/tests/python/stubs"), Into::into);
        let packages = [self.directory.path().join("packages"), stubs];
        command
            .arg(root.join(script))
            .args(arguments)
            .env("PYTHONPATH", std::env::join_paths(packages).expect("paths"))
            .env("XDG_RUNTIME_DIR", self.directory.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(environment.iter().copied())
            .stdout(Stdio::from(file))
            .stderr(Stdio::inherit());
        Broadcast { child: command.spawn().expect("it starts"), output }
    }

    /// Its source, and the group's number.
    fn sends(&self, arguments: &[&str]) -> (Broadcast, String) {
        let source = self.runs("S1", "source", &[&["source", "--proxy", "2001:db8:cc::1"], arguments].concat());
        let group = source.group();
        (source, group)
    }
}

/// Three receivers, one of them by asyncio, one killed and started again; then a source whose interpreter ends in the
/// middle of a version.
#[test]
#[ignore = "needs root"]
fn the_python_example_broadcasts_and_ends() {
    const VERSIONS: u64 = 20;
    let network = Network::start();
    network.has_package();
    let versions = VERSIONS.to_string();
    let given = ["--receivers", "3", "--octets", "4000001", "--pause", "0.05", "--versions", &versions];
    let (mut source, group) = network.sends(&given);
    let mut plain = network.runs("R1", "plain", &["receive", &group]);
    let mut asynchronous = network.runs("R3", "asynchronous", &["receive", &group, "--asyncio"]);
    let mut killed = network.runs("R5", "killed", &["receive", &group]);
    killed.waits("three versions", |killed| killed.versions().len() >= 3);
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("a child");
    let mut restarted = network.runs("R5", "restarted", &["receive", &group]);
    for process in [&mut source, &mut plain, &mut asynchronous, &mut restarted] {
        process.ends();
    }
    let sent = source.versions();
    assert_eq!(sent.keys().copied().collect::<Vec<_>>(), (1..=VERSIONS).collect::<Vec<_>>());
    assert_eq!((plain.versions(), asynchronous.versions()), (sent.clone(), sent.clone()));
    let after = restarted.versions();
    let first = *after.keys().next().expect("it has joined again");
    assert_eq!(after, sent.range(first..).map(|(version, sum)| (*version, sum.clone())).collect());
    for receiver in [&plain, &asynchronous, &restarted] {
        assert_eq!(receiver.lines().last().map(String::as_str), Some("over"));
    }
    let statistics = source.lines().pop().expect("a line");
    assert!(statistics.contains(&format!("'octets': {}", VERSIONS * 4_000_001)), "{statistics}");

    let (mut source, group) = network.sends(&["--exit-at", "2", "--octets", "4000001"]);
    let mut receiver = network.runs("R1", "last", &["receive", &group]);
    receiver.ends();
    assert_eq!(source.child.wait().expect("a child").code(), Some(3), "{:?}", source.lines());
    assert_eq!(receiver.lines().last().map(String::as_str), Some("over"));
    assert!(receiver.versions().len() >= 2, "{:?}", receiver.lines());
}

/// A buffer stays as long as the library reads it.
#[test]
#[ignore = "needs root"]
fn buffers_that_a_program_forgets_are_published() {
    let network = Network::start();
    network.has_package();
    let script = "crates/cli/tests/cli/lab_library/freed_buffers.py";
    let mut source = network.runs_script(script, "S1", "source", &[], &[]);
    let mut receiver = network.runs_script(script, "R1", "receiver", &[&source.first_line()], &[]);
    source.ends();
    receiver.ends();
    assert_eq!(receiver.lines(), (1..=7).map(|version| format!("version {version}")).collect::<Vec<_>>());
}

/// A process group of torch with four ranks, the last of which dies.
#[test]
#[ignore = "needs root"]
fn torch_ranks_send_to_each_other_by_groups() {
    let network = Network::of("leaves", include_str!("leaves.toml"));
    network.has_package();
    let file = network.directory.path().join("store");
    let file = file.to_str().expect("UTF-8");
    let script = "crates/cli/tests/cli/lab_library/torch_ranks.py";
    let start = |(rank, (host, local, addresses)): (usize, &(&str, &str, &str))| {
        let rank = rank.to_string();
        let environment =
            [("SRDMA_TORCH_SLOT_MIB", "2"), ("LOCAL_RANK", *local), ("SRDMA_TORCH_ADDRESSES", *addresses)];
        network.runs_script(script, host, &format!("rank {rank}"), &[&rank, "4", file], &environment)
    };
    // H1 has two addresses.
    let addresses = "2001:db8:aa:1::1,2001:db8:aa:1::2";
    let ranks = [("H1", "1", addresses), ("H2", "0", ""), ("H3", "0", ""), ("H4", "0", "")];
    let mut ranks: Vec<Broadcast> = ranks.iter().enumerate().map(start).collect();
    let (dying, others) = ranks.split_last_mut().expect("four");
    assert_eq!(dying.child.wait().expect("a child").code(), Some(9), "{:?}", dying.lines());
    fs::write(format!("{file}.dead"), "").expect("written");
    others.iter_mut().for_each(Broadcast::ends);
    let lines = others[0].lines();
    assert_eq!((lines.len(), lines.last().map(String::as_str)), (8, Some("done")), "{lines:?}");
    assert!(others.iter().all(|rank| rank.lines() == lines));
    assert_eq!(dying.lines(), lines[..7]);
}
