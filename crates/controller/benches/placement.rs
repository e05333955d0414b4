//! Delay of other requests during a placement: `cargo bench -p srdma-controller --bench placement`.
//!
//! 256 NICs below 16 leaves and 8 spines, one link failed; four all-to-all collectives of 261,120 flows are placed within a
//! deadline of 10 s. Meanwhile one client reads the list of groups, and a node synchronises, each one request after the
//! other, and each every 5 ms.

use srdma_api::{Client, GroupPage, NewJob, PROTOCOL, Registration, Session, Sync, SyncAnswer, WhatIfAnswer};
use srdma_controller::{Config, OnDisk, Server, Store};
use srdma_figures::report;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const FABRIC: &str =
    "kind = \"leaf-spine\"\nleaves = 16\nspines = 8\nhosts_per_leaf = 16\n[[failed]]\nname = \"leaf1-spine1\"\n";

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let fabric = folder.path().join("fabric.toml");
    std::fs::write(&fabric, FABRIC).expect("a file");
    let listen = vec!["[::1]:0".parse().expect("an address")];
    let config = Config { listen, fabric: Some(fabric), placement_deadline_ms: 10_000, ..Config::default() };
    let store: Arc<dyn Store> = Arc::new(OnDisk::open(&folder.path().join("store")).expect("a store"));
    let runtime = Runtime::new().expect("a runtime");
    let start = Server::start(config, store, None, || std::process::exit(1));
    let server = runtime.block_on(start).expect("a controller");
    let url = format!("http://{}", server.addresses()[0]);
    runtime.spawn(server.run(std::future::pending()));
    let client = || Client::new(&url, None, None).expect("a client");
    let session: Session = client().post("/v1/nodes", &registration(), None).expect("it registers").value;
    let list = |client: &Client| drop(client.get::<GroupPage>("/v1/groups").expect("a page"));
    let sync = |client: &Client| {
        let sync = Sync { session: session.session, ..Sync::default() };
        client.post::<SyncAnswer>("/v1/nodes/N1/sync", &sync, None).expect("an answer");
    };
    let is_over = AtomicBool::new(false);
    for (what, places) in [("without a placement", false), ("during the placement", true)] {
        is_over.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let lists = scope.spawn(|| times(&client(), &is_over, list));
            let syncs = scope.spawn(|| times(&client(), &is_over, sync));
            let began = Instant::now();
            if places {
                let placed: WhatIfAnswer = client().post("/v1/jobs", &jobs(), None).expect("it is placed").value;
                assert!(placed.is_cut_short);
                let what = format!("placing {} flows within a deadline of 10 s, cut short", placed.added.len());
                report(what, "s", [began.elapsed().as_secs_f64()]);
            } else {
                std::thread::sleep(Duration::from_secs(5));
            }
            is_over.store(true, Ordering::Relaxed);
            report(format!("`GET /v1/groups` {what}"), "ms", lists.join().expect("times"));
            report(format!("sync of a node {what}"), "ms", syncs.join().expect("times"));
        });
    }
}

/// Milliseconds of each request.
fn times(client: &Client, is_over: &AtomicBool, request: impl Fn(&Client)) -> Vec<f64> {
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        request(client);
        times.push(began.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(Duration::from_millis(5));
    }
    times
}

fn jobs() -> NewJob {
    let collective = |number| format!("[[job.collective]]\nkind = \"all-to-all\"\nperiod_us = {}\n", 1000 + number);
    let collectives: String = (0..4).map(collective).collect();
    NewJob { jobs: format!("[[job]]\nname = \"large\"\nnics = [\"h*\"]\n{collectives}") }
}

fn registration() -> Registration {
    Registration {
        protocol: PROTOCOL,
        name: "N1".to_owned(),
        loopback: "2001:db8:ff:1::1".parse().expect("an address"),
        end_mt: None,
        replication: None,
        links: Vec::new(),
        hosts: Vec::new(),
        groups: Vec::new(),
        repairs: false,
    }
}
