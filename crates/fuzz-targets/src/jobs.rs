//! Files of traffic: jobs, traces and lists of flows.

use srdma_fabric::Topology;
use srdma_placement::{GoalTrace, NcclAlgorithm};
use srdma_placement::{
    ListedFlow, flows_from_csv, flows_from_goal, flows_from_nccl, flows_from_nccl_log, jobs_with_traces_from_toml,
};
use std::sync::LazyLock;

static FABRIC: LazyLock<Topology> =
    LazyLock::new(|| Topology::from_toml(include_str!("../../../fabrics/rail.toml")).expect("a fabric"));

/// A digit that selects the format, then the text: it is refused with a line that it has, or its flows are between
/// NICs of the fabric.
pub fn jobs(input: &[u8]) {
    let Some((format, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let fabric = &*FABRIC;
    let servers = ["h1.1.", "h1.2.", "h2.1."].map(str::to_owned);
    let flows = match format % 6 {
        0 => {
            // The trace of a job lies behind its text.
            let (jobs, trace) = text.split_once("\n===\n").unwrap_or((text, ""));
            jobs_with_traces_from_toml(jobs, fabric, &|_| Ok(trace.to_owned())).map(|jobs| {
                assert!(jobs.iter().all(|job| !job.name.is_empty()), "a job without a name");
                Vec::new()
            })
        }
        1 => flows_from_goal(text, fabric).inspect(|_| {
            let trace = GoalTrace::parse(text).expect("it has flows");
            assert!(trace.ranks() > 0);
        }),
        2 => flows_from_csv(text, fabric),
        3 => flows_from_nccl_log(text, fabric, &servers),
        4 => flows_from_nccl(text, fabric, &servers, NcclAlgorithm::Ring),
        _ => flows_from_nccl(text, fabric, &servers, NcclAlgorithm::Tree),
    };
    match flows {
        Ok(flows) => flows.iter().for_each(check),
        Err(error) => {
            let lines = text.split('\n').count() + 1;
            assert!((1..=lines).contains(&error.line), "line {} of {lines}: {}", error.line, error.problem);
            assert!(!error.problem.is_empty());
        }
    }
}

fn check(listed: &ListedFlow) {
    let hosts = FABRIC.hosts().len();
    assert!([listed.flow.from, listed.flow.to].iter().all(|host| (host.0 as usize) < hosts), "{listed:?}");
}
