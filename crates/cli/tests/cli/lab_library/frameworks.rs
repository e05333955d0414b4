//! Adapters of frameworks, between stubs of their interfaces, which reproduce names, parameters and the order of calls:
//! `crates/python/tests/python/stubs`.

use super::{Broadcast, Network};
use std::fs;

impl Network {
    fn runs_job(&self, script: &str, host: &str, name: &str, arguments: &[&str]) -> Broadcast {
        let script = format!("crates/cli/tests/cli/lab_library/frameworks/{script}");
        self.runs_script(&script, host, &name.replace(' ', "-"), arguments, &[("SRDMA_TORCH_SLOT_MIB", "2")])
    }

    fn job_directory(&self) -> String {
        let directory = self.directory.path().join("job");
        fs::create_dir(&directory).expect("a directory");
        directory.to_str().expect("UTF-8").to_owned()
    }

    /// Processes with their names, each on its host.
    fn runs_named(&self, script: &str, directory: &str, processes: &[(&str, &str)]) -> Vec<Broadcast> {
        let start = |(host, name): &(&str, &str)| self.runs_job(script, host, name, &[directory, name]);
        processes.iter().map(start).collect()
    }

    /// Ranks, each on its host.
    fn runs_ranks(&self, script: &str, directory: &str, hosts: &[&str]) -> Vec<Broadcast> {
        let size = hosts.len().to_string();
        let start = |(rank, host): (usize, &&str)| {
            let rank = rank.to_string();
            self.runs_job(script, host, &format!("rank {rank}"), &[&rank, &size, directory])
        };
        hosts.iter().enumerate().map(start).collect()
    }
}

/// A verl job: two trainers, and three rollout workers on two hosts, get the weights of three steps; in the fourth one a
/// worker dies, and the others have errors in time.
#[test]
#[ignore = "needs root"]
fn verl_workers_have_the_weights_of_each_step() {
    let network = Network::start();
    network.has_package();
    let directory = network.job_directory();
    let processes = [
        ("S1", "trainer 0"),
        ("S1", "trainer 1"),
        ("R1", "rollout 0"),
        ("R1", "rollout 1"),
        ("R3", "rollout 2"),
        ("S1", "manager"),
    ];
    let mut job = network.runs_named("verl_job.py", &directory, &processes);
    let mut manager = job.pop().expect("the last");
    let mut dying = job.pop().expect("the one before");
    manager.waits("three steps", |manager| manager.lines().len() >= 3);
    manager.waits("a failure", |manager| manager.lines().len() >= 4);
    manager.ends();
    assert_eq!(manager.lines(), ["step 1", "step 2", "step 3", "failed", "done"]);
    assert_eq!(dying.child.wait().expect("a child").code(), Some(9));
    job.iter_mut().for_each(Broadcast::ends);
}

/// A vLLM job: a trainer and three workers on two hosts. A worker's error, and its death, end an update at once; a
/// trainer can connect again.
#[test]
#[ignore = "needs root"]
fn vllm_workers_have_the_weights_of_each_update() {
    let network = Network::start();
    network.has_package();
    let directory = network.job_directory();
    let processes = [("R1", "worker 0"), ("R1", "worker 1"), ("R3", "worker 2"), ("S1", "trainer")];
    let mut job = network.runs_named("vllm_job.py", &directory, &processes);
    let mut trainer = job.pop().expect("the last");
    let mut dying = job.pop().expect("the one before");
    trainer.ends();
    assert_eq!(trainer.lines(), ["step 1", "step 2", "step 3", "failed", "died", "done"]);
    assert_eq!(dying.child.wait().expect("a child").code(), Some(9));
    job.iter_mut().for_each(Broadcast::ends);
}

/// Three ranks of checkpoint-engine, each of which has a part of the weights. The last one dies.
#[test]
#[ignore = "needs root"]
fn checkpoint_engine_broadcasts_by_groups_and_does_the_rest_by_gloo() {
    let network = Network::of("leaves", include_str!("leaves.toml"));
    network.has_package();
    let directory = network.job_directory();
    let mut ranks = network.runs_ranks("checkpoint_engine_job.py", &directory, &["H2", "H3", "H4"]);
    let mut dying = ranks.pop().expect("the last");
    assert_eq!(dying.child.wait().expect("a child").code(), Some(9), "{:?}", dying.lines());
    fs::write(format!("{directory}/dead"), "").expect("written");
    ranks.iter_mut().for_each(Broadcast::ends);
    assert!(ranks.iter().all(|rank| rank.lines() == ["update 1", "update 2", "done"]));
}

/// The calls of sglang for weights: a group of its own beside the default one, a broadcast for each tensor, and a wait for
/// all at the end.
#[test]
#[ignore = "needs root"]
fn sglang_gets_weights_by_the_backend_of_torch() {
    let network = Network::start();
    network.has_package();
    let directory = network.job_directory();
    let mut ranks = network.runs_ranks("sglang_job.py", &directory, &["S1", "R1", "R3"]);
    ranks.iter_mut().for_each(Broadcast::ends);
    assert!(ranks.iter().all(|rank| rank.lines() == ["step 1", "step 2", "step 3", "done"]));
}
