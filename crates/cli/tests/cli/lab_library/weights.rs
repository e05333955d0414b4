//! `examples/weights.py`: training that publishes its weights to replicas, and the same by gloo.

use super::{Broadcast, Network};
use serde_json::Value;
use std::collections::BTreeMap;

const SCRIPT: &str = "examples/weights.py";
const LAB: &str = include_str!("../../../../../labs/eight-receivers.toml");

impl Network {
    fn weighs(&self, host: &str, name: &str, arguments: &[&str]) -> Broadcast {
        self.runs_script(SCRIPT, host, name, arguments, &[])
    }
}

impl Broadcast {
    fn objects(&self) -> Vec<Value> {
        self.lines().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[track_caller]
    fn number_of_group(&self) -> String {
        let line: Value = serde_json::from_str(&self.first_line()).expect("JSON");
        line["group"].to_string()
    }

    /// The answer of the model after each step.
    fn answers(&self) -> BTreeMap<u64, f64> {
        let answer = |line: &Value| Some((line["step"].as_u64()?, line["answer"].as_f64()?));
        self.objects().iter().filter_map(answer).collect()
    }
}

/// Eight replicas, of which one is killed and starts again, and one is late.
#[test]
#[ignore = "needs root"]
fn replicas_compute_with_the_weights_of_each_step() {
    const STEPS: u64 = 8;
    let network = Network::of("eight-receivers", LAB);
    network.has_package();
    let steps = STEPS.to_string();
    let given = ["train", "--mib", "32", "--steps", &steps, "--replicas", "7", "--pause", "1"];
    let mut trainer = network.weighs("S", "trainer", &given);
    let group = trainer.number_of_group();
    let serve = ["serve", group.as_str()];
    let mut replicas: Vec<Broadcast> =
        (1..=6).map(|number| network.weighs(&format!("R{number}"), &format!("replica {number}"), &serve)).collect();
    let mut killed = network.weighs("R7", "killed", &serve);
    killed.waits("two steps", |killed| killed.answers().len() >= 2);
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("a child");
    let mut restarted = network.weighs("R7", "restarted", &serve);
    let mut late = network.weighs("R8", "late", &serve);
    trainer.ends();
    for replica in replicas.iter_mut().chain([&mut restarted, &mut late]) {
        replica.ends();
    }
    let expected = trainer.answers();
    assert_eq!(expected.keys().copied().collect::<Vec<_>>(), (1..=STEPS).collect::<Vec<_>>());
    let mut distinct: Vec<u64> = expected.values().map(|answer| answer.to_bits()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len() as u64, STEPS, "the weights differ after each step: {expected:?}");
    for replica in &replicas {
        assert_eq!(replica.answers(), expected);
    }
    for replica in [&restarted, &late] {
        let answers = replica.answers();
        let first = *answers.keys().next().expect("it has joined in time");
        assert!(first <= STEPS, "{answers:?}");
        assert_eq!(answers, expected.range(first..).map(|(step, answer)| (*step, *answer)).collect());
    }
    assert!(killed.answers().iter().all(|(step, answer)| expected[step] == *answer));
}

/// The comparison by gloo trains and serves the same.
#[test]
#[ignore = "needs root"]
fn weights_by_gloo_are_those_by_groups() {
    let network = Network::of("eight-receivers", LAB);
    network.has_package();
    let answers_of = |way: &str| {
        let store = network.directory.path().join("store");
        let common = ["--mib", "16", "--steps", "2", "--replicas", "3"];
        let gloo = ["--gloo", store.to_str().expect("UTF-8")];
        let gloo = if way == "gloo" { &gloo[..] } else { &[] };
        let mut trainer = network.weighs("S", way, &[&["train"], &common[..], gloo].concat());
        let mut replicas = Vec::new();
        let group = (way != "gloo").then(|| trainer.number_of_group());
        for number in 1..=3 {
            let (host, name, rank) = (format!("R{number}"), format!("{way} {number}"), number.to_string());
            let given = match &group {
                Some(group) => vec!["serve", group],
                None => [&["serve"], &common[..], gloo, &["--rank", &rank]].concat(),
            };
            replicas.push(network.weighs(&host, &name, &given));
        }
        trainer.ends();
        replicas.iter_mut().for_each(Broadcast::ends);
        let answers = trainer.answers();
        assert_eq!(answers.len(), 2);
        replicas.iter().for_each(|replica| assert_eq!(replica.answers(), answers));
        answers
    };
    assert_eq!(answers_of("gloo"), answers_of("srdma"));
}
