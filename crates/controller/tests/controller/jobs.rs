//! Jobs over HTTP: placed, read, moved, removed, and restored by a restart (PP-4-1).

use crate::running::*;
use srdma_api::{ClientError, DrainLinks, Job, JobPage, NewJob, WhatIf, WhatIfAnswer};
use srdma_controller::Config;
use std::path::PathBuf;
use std::sync::Arc;

fn fabric() -> Config {
    let fabrics = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics"));
    Config { fabric: Some(fabrics.join("figure1.toml")), ..config() }
}

fn figure_1_jobs() -> NewJob {
    NewJob { jobs: include_str!("../../../../fabrics/figure1-jobs.toml").to_owned() }
}

fn name<T: std::fmt::Debug>(refused: Result<T, ClientError>) -> String {
    refused.unwrap_err().problem().expect("a problem").name().to_owned()
}

#[test]
fn jobs_are_placed_moved_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let running = Running::start(fabric(), Arc::new(opened(&file)), None);
    let client = running.client();
    let change = WhatIf { add: Some(figure_1_jobs()), ..WhatIf::default() };
    let predicted: WhatIfAnswer = client.post("/v1/whatif", &change, None).unwrap().value;
    assert!(client.get::<JobPage>("/v1/jobs").unwrap().value.jobs.is_empty(), "what-if changes nothing");
    let placed: WhatIfAnswer = client.post("/v1/jobs", &figure_1_jobs(), None).unwrap().value;
    assert_eq!(placed, predicted);
    assert!(placed.added.iter().all(|flow| flow.path.len() > 2 && !flow.program.is_empty()));
    let page: JobPage = client.get("/v1/jobs").unwrap().value;
    let first = &page.jobs[0].name;
    let path = format!("/v1/jobs/{first}");
    let before: Job = client.get(&path).unwrap().value;
    let passed = before.flows.iter().flat_map(|flow| &flow.path);
    let spine = passed.filter(|node| node.starts_with("spine")).min().unwrap().clone();
    let drain = |drained| DrainLinks { names: vec![spine.clone()], drained };
    let moved: WhatIfAnswer = client.put("/v1/fabric/drained", &drain(true)).unwrap().value;
    assert!(!moved.moved.is_empty() && moved.moved.iter().all(|flow| !flow.path.contains(&spine)));
    let after: Job = client.get(&path).unwrap().value;
    assert_eq!(name(client.post::<WhatIfAnswer>("/v1/jobs", &figure_1_jobs(), None)), "job-conflict");
    assert_eq!(name(client.get::<Job>("/v1/jobs/unknown")), "unknown-job");
    let wrong = NewJob { jobs: "[[job]]\nname = 1\n".to_owned() };
    assert_eq!(name(client.post::<WhatIfAnswer>("/v1/jobs", &wrong, None)), "invalid-request");
    drop(running);
    let running = Running::start(fabric(), Arc::new(opened(&file)), None);
    let client = running.client();
    assert_eq!(client.get::<Job>(&path).unwrap().value, after);
    client.put::<WhatIfAnswer>("/v1/fabric/drained", &drain(false)).unwrap();
    client.delete::<WhatIfAnswer>(&path).unwrap();
    assert_eq!(name(client.get::<Job>(&path)), "unknown-job");
}

#[test]
fn without_a_fabric_there_are_no_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    assert_eq!(name(running.client().get::<JobPage>("/v1/jobs")), "no-fabric");
}
