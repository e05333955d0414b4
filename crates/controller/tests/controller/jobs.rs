//! Jobs over HTTP: placed, read, moved, removed, and restored by a restart (PP-4-1).

use crate::access::{client, token};
use crate::fleet::registration;
use crate::running::*;
use srdma_api::{
    Client, ClientError, DrainLinks, GroupPage, Job, JobPage, NewJob, Session, Sync, SyncAnswer, WhatIf, WhatIfAnswer,
};
use srdma_controller::{Config, Role, Tenant};
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

/// Two tenants on figure 1: `a` has nic1 and nic3 and the number 7, `b` the others.
fn shared() -> Config {
    let tenant = |name: &str, number, nics: [&str; 2]| Tenant {
        name: name.to_owned(),
        number: Some(number),
        nics: nics.map(str::to_owned).to_vec(),
        has_all_nics: false,
        ..Tenant::default()
    };
    Config {
        token: vec![
            token("root", Role::Admin, None),
            token("a", Role::Tenant, Some("a")),
            token("b", Role::Tenant, Some("b")),
            token("reader", Role::Read, None),
        ],
        tenant: vec![tenant("a", 7, ["nic1", "nic3"]), tenant("b", 8, ["nic2", "nic4"])],
        ..fabric()
    }
}

fn pair(name: &str, from: &str, to: &str) -> NewJob {
    let nics = format!("nics = [\"{from}\", \"{to}\"]");
    NewJob { jobs: format!("[[job]]\nname = \"{name}\"\n{nics}\n[[job.collective]]\nkind = \"send-recv\"\n") }
}

/// D104: tenants do not see, name, move or use what is another one's.
#[test]
fn tenants_are_kept_apart_on_the_fabric() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(shared(), &folder.path().join("store"));
    let [a, b, reader, root] = ["a", "b", "reader", "root"].map(|name| client(&running, name));
    let place = |client: &Client, path: &str, new: &NewJob| client.post::<WhatIfAnswer>(path, new, None);
    let placed = place(&b, "/v1/jobs", &pair("secret", "nic2", "nic4")).unwrap().value;
    assert!(placed.added.iter().all(|flow| flow.tenant == "b"));
    assert_eq!(name(place(&a, "/v1/jobs", &pair("mine", "nic1", "nic4"))), "job-not-permitted");
    let foreign = NewJob { jobs: pair("mine", "nic1", "nic3").jobs.replace("[[job.c", "tenant = 8\n[[job.c") };
    assert_eq!(name(place(&a, "/v1/jobs", &foreign)), "job-not-permitted");
    // The same name, of another tenant.
    let own = place(&a, "/v1/jobs", &pair("secret", "nic1", "nic3")).unwrap().value;
    assert_eq!((own.before, own.moved.len(), own.added[0].tenant.as_str()), (0.0, 0, "a"));
    let detail = |path: &str| a.get::<Job>(path).unwrap_err().problem().expect("a problem").detail.clone();
    place(&b, "/v1/jobs", &pair("other", "nic4", "nic2")).unwrap();
    assert_eq!(detail("/v1/jobs/other"), detail("/v1/jobs/none").replace("none", "other"));
    assert_eq!(name(a.delete::<WhatIfAnswer>("/v1/jobs/other")), "unknown-job");
    assert_eq!(a.get::<Job>("/v1/jobs/secret").unwrap().value.flows, own.added);
    assert_eq!(name(a.get::<Job>("/v1/jobs/secret?tenant=b")), "other-tenant");
    assert_eq!(name(a.get::<Job>("/v1/jobs/secret?tenant=nosuch")), "other-tenant");
    let listed = |client: &Client, path: &str| client.get::<JobPage>(path).unwrap().value.jobs.len();
    assert_eq!([listed(&a, "/v1/jobs"), listed(&b, "/v1/jobs"), listed(&reader, "/v1/jobs")], [1, 2, 3]);
    assert_eq!(listed(&root, "/v1/jobs?tenant=b"), 2);
    assert_eq!(root.get::<Job>("/v1/jobs/secret?tenant=b").unwrap().value.tenant, "b");
    let refused = place(&root, "/v1/jobs?tenant=nosuch", &pair("j", "nic1", "nic3")).unwrap_err();
    assert_eq!(refused.problem().expect("a problem").detail, "tenant nosuch is not configured");
    assert_eq!(name(place(&root, "/v1/jobs?tenant=b", &pair("j", "nic1", "nic3"))), "job-not-permitted");
    assert_eq!(name(place(&reader, "/v1/jobs", &pair("j", "nic1", "nic3"))), "forbidden");
    assert_eq!(name(a.post::<WhatIfAnswer>("/v1/whatif", &WhatIf::default(), None)), "forbidden");
    assert_eq!(root.get::<Job>("/v1/jobs/other").unwrap().value.tenant, "b", "the only job of this name");
    assert_eq!(name(root.get::<Job>("/v1/jobs/secret")), "unknown-job", "there are two");
    root.delete::<WhatIfAnswer>("/v1/jobs/secret?tenant=b").unwrap();
    assert!(a.get::<Job>("/v1/jobs/secret").is_ok());
}

#[test]
fn wrong_nics_and_numbers_of_tenants_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = shared();
    config.tenant[1].number = Some(7);
    assert!(config.check().unwrap_err().contains("number 7 is that of"));
    config.tenant[1].number = Some(4096);
    assert!(config.check().unwrap_err().contains("expected 0 to 4095"));
    let mut config = shared();
    config.tenant[0].nics.push("nic9".to_owned());
    let store = Arc::new(opened(&folder.path().join("store")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = srdma_controller::Server::start(config, store, None, || std::process::exit(1));
    let Err(error) = runtime.block_on(start) else { panic!("it starts") };
    assert!(error.to_string().contains("nic9 is no NIC of this fabric"), "{error}");
}

/// D103: while a placement of minutes runs, other requests and nodes are answered. A second placement of the same tenant,
/// which is refused, shows that the first is running before and after them.
#[test]
fn a_long_placement_delays_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fabric.toml");
    std::fs::write(&file, fabric_with_failed_link(16)).unwrap();
    let config = Config { fabric: Some(file), placement_deadline_ms: 600_000, ..config() };
    let running = Running::with(config, &folder.path().join("store"));
    let client = running.client();
    let session: Session = client.post("/v1/nodes", &registration(1), None).unwrap().value;
    let (large, small) = (all_to_all("large", "h*"), all_to_all("small", "h1.*"));
    let is_refused = |placed: &Result<_, ClientError>| match placed {
        Err(error) => error.problem().is_some_and(|problem| problem.name() == "too-many-placements"),
        Ok(_) => false,
    };
    // It is repeated while a question below is running, and ends with an error when the test ends the controller.
    let other = running.client();
    let placing = std::thread::spawn(move || {
        let mut place =
            || Some(other.post::<WhatIfAnswer>("/v1/jobs", &large, None)).filter(|placed| !is_refused(placed));
        until("the large job is placed, or its placement has ended", &mut place)
    });
    let question = WhatIf { add: Some(small), ..WhatIf::default() };
    let is_running = || is_refused(&client.post::<WhatIfAnswer>("/v1/whatif", &question, None)).then_some(());
    until("the placement has begun", is_running);
    for _ in 0..20 {
        client.get::<GroupPage>("/v1/groups").unwrap();
        client.get::<JobPage>("/v1/jobs").unwrap();
        let sync = Sync { session: session.session, ..Sync::default() };
        client.post::<SyncAnswer>("/v1/nodes/N1/sync", &sync, None).unwrap();
    }
    let group = create(&client, 1).summary.id;
    join(&client, group, 1);
    assert!(is_running().is_some(), "all of them were answered while it was running");
    assert!(!placing.is_finished());
    drop(running);
    assert!(placing.join().unwrap().is_err());
}

/// D103: at the deadline the best plan so far is taken, and its answer says so. Without one this takes much longer.
#[test]
fn a_placement_ends_at_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fabric.toml");
    std::fs::write(&file, fabric_with_failed_link(8)).unwrap();
    // Each flow has a path at once, long before twice the deadline.
    let config = Config { fabric: Some(file), placement_deadline_ms: 5000, ..config() };
    let running = Running::with(config, &folder.path().join("store"));
    let client = running.client();
    let placed: WhatIfAnswer = client.post("/v1/jobs", &all_to_all("large", "h*"), None).unwrap().value;
    assert!(placed.is_cut_short && placed.after >= placed.bound);
    assert_eq!(placed.added.len(), 3 * 128 * 127);
    assert_eq!(client.get::<Job>("/v1/jobs/large").unwrap().value.flows, placed.added);
}

/// 16 leaves with so many hosts each. The failed link leaves much to improve.
fn fabric_with_failed_link(hosts: u16) -> String {
    let failed = "[[failed]]\nname = \"leaf1-spine1\"\n";
    format!("kind = \"leaf-spine\"\nleaves = 16\nspines = 8\nhosts_per_leaf = {hosts}\n{failed}")
}

/// A job of three collectives of slightly different rates.
fn all_to_all(name: &str, nics: &str) -> NewJob {
    let collective = |number| format!("[[job.collective]]\nkind = \"all-to-all\"\nperiod_us = {}\n", 1000 + number);
    let collectives: String = (0..3).map(collective).collect();
    NewJob { jobs: format!("[[job]]\nname = \"{name}\"\nnics = [\"{nics}\"]\n{collectives}") }
}
