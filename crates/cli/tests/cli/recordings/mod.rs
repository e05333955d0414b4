//! Recordings (docs/page.md), read and added up.

#![allow(dead_code)] // each test file uses a part

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Octets of the longest frame.
const LONGEST_FRAME: f64 = 4500.0;

/// A recording as it is at its end, with what all samples come to.
pub(crate) struct Recording {
    /// The first line.
    pub(crate) head: Value,
    /// Times of the samples, nanoseconds.
    pub(crate) times: Vec<u64>,
    /// Octets that each link has carried, there and back.
    pub(crate) octets: Vec<[f64; 2]>,
    /// Of each sample: nanoseconds since the one before, and each link's rates in octets a second.
    pub(crate) rates: Vec<(u64, Vec<[u64; 2]>)>,
    /// The last point and lag of each branch: group, node, branch.
    pub(crate) points: BTreeMap<[u64; 3], [Option<u64>; 2]>,
    /// Packets by node and reason.
    pub(crate) drops: BTreeMap<(String, String), u64>,
    /// Events of the recording.
    pub(crate) events: Vec<Value>,
}

impl Recording {
    /// Runs a scenario by `sim` with `--json`, with a recording at a pace and without, which makes no difference.
    pub(crate) fn of_run(name: &str, pace: &[&str], sim: impl Fn(&[&str]) -> Output) -> (Value, Recording) {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("recorded-{name}.jsonl"));
        let plain = sim(&["--json"]);
        let shown = sim(&[pace, &["--json", "--record", path.to_str().unwrap()]].concat());
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        assert!(plain.stdout == shown.stdout, "{name}: recording changes the outcome");
        (serde_json::from_slice(&shown.stdout).unwrap(), Recording::read(&path))
    }

    /// No link carries more than it can: a frame counts when its transmission begins, so one more may be in a span.
    pub(crate) fn assert_rates(&self, octets_per_second: impl Fn(&str) -> f64) {
        let links = self.links();
        for (span_ns, rates) in &self.rates {
            for (name, rate) in links.iter().zip(rates).flat_map(|(name, ways)| ways.map(|way| (name, way))) {
                let [carried, could] = [rate as f64, octets_per_second(name)].map(|rate| rate * *span_ns as f64 / 1e9);
                assert!(carried <= could + LONGEST_FRAME, "{name}: {carried} octets in {span_ns} ns");
            }
        }
    }

    /// Reads a file. It is refused as the page would refuse it.
    pub(crate) fn read(path: &Path) -> Recording {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let head = lines.next().unwrap();
        assert_eq!((&head["recording"], &head["version"]), (&"srdma".into(), &2.into()));
        let links = head["topology"]["links"].as_array().unwrap().len();
        let mut recording = Recording {
            head,
            times: Vec::new(),
            octets: vec![[0.0; 2]; links],
            rates: Vec::new(),
            points: BTreeMap::new(),
            drops: BTreeMap::new(),
            events: Vec::new(),
        };
        let mut rates = vec![[0; 2]; links];
        for sample in lines {
            recording.add(&sample, &mut rates);
        }
        assert!(recording.times.is_sorted_by(|a, b| a < b), "each later than the one before");
        recording
    }

    fn add(&mut self, sample: &Value, rates: &mut [[u64; 2]]) {
        let time = sample["t_ns"].as_u64().unwrap();
        let span_ns = time - self.times.last().copied().unwrap_or(0);
        self.times.push(time);
        for link in array(&sample["links"]) {
            rates[link[0].as_u64().unwrap() as usize] = [1, 2].map(|way| link[way].as_u64().unwrap());
        }
        for (octets, rate) in self.octets.iter_mut().flatten().zip(rates.iter().flatten()) {
            *octets += *rate as f64 * span_ns as f64 / 1e9;
        }
        self.rates.push((span_ns, rates.to_vec()));
        for branch in array(&sample["branches"]) {
            let key = [0, 1, 2].map(|place| branch[place].as_u64().unwrap());
            self.points.insert(key, [branch[3].as_u64(), branch[4].as_u64()]);
        }
        for drop in array(&sample["drops"]) {
            let [node, reason] = [0, 1].map(|place| drop[place].as_str().unwrap().to_owned());
            let packets = drop[2].as_u64().unwrap();
            let before = self.drops.insert((node, reason), packets);
            assert!(before.is_none_or(|before| before < packets), "drops are counted from the beginning");
        }
        self.events.extend(array(&sample["events"]).cloned());
    }

    /// The names of the links, end by end.
    pub(crate) fn links(&self) -> Vec<String> {
        let name = |link: &Value| [0, 1].map(|end| link["ends"][end].as_str().unwrap().to_owned()).join("-");
        array(&self.head["topology"]["links"]).map(name).collect()
    }

    /// The names of nodes and hosts.
    pub(crate) fn places(&self) -> Vec<&str> {
        array(&self.head["topology"]["nodes"]).map(|node| node["name"].as_str().unwrap()).collect()
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
