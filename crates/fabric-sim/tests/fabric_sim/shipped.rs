//! The scenarios that are shipped.

use srdma_fabric_sim::{Kind, Scenario};
use std::path::{Path, PathBuf};

/// All `.toml` files below a folder.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}

#[test]
fn every_shipped_scenario_parses() {
    let mut files = Vec::new();
    files_below(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios")), &mut files);
    let scenarios: Vec<Scenario> = files.iter().map(|file| Scenario::read(file).unwrap()).collect();
    let of_kind = |kind| scenarios.iter().filter(|scenario| scenario.kind() == kind).count();
    let found = [Kind::Fabric, Kind::FlowLevel, Kind::Wan, Kind::EndToEnd].map(of_kind);
    assert_eq!(found, [18, 2, 3, 1], "fabric, flow-level, wan, end-to-end");
    assert!(scenarios.iter().all(|scenario| scenario.runs(scenario.seeds() as usize) > 0));
}
