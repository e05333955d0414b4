//! Jobs are placed as `srdma plan` places them, survive a restart, and few flows move.

use srdma_api::{NewJob, PlacedFlow, WhatIf, WhatIfAnswer};
use srdma_controller_core::{Deadline, Evaluated, JobError, JobRow, JobRows, Jobs, MAX_FLOWS, Phase, Tenant};
use srdma_fabric::{Encoding, SidPlan, Topology};
use std::collections::BTreeMap;

const FIGURE1: &str = include_str!("../../../../fabrics/figure1.toml");
const FIGURE1_JOBS: &str = include_str!("../../../../fabrics/figure1-jobs.toml");
const RAIL: &str = include_str!("../../../../fabrics/rail.toml");
const RAIL_JOBS: &str = include_str!("../../../../fabrics/rail-jobs.toml");
const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n";

fn jobs_on(fabric: &str) -> Jobs {
    let topology = Topology::from_toml(fabric).unwrap();
    let sids = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
    Jobs::new(topology, sids, Encoding::Nodes)
}

type Changed = Result<(Vec<JobRow>, WhatIfAnswer), JobError>;

/// A tenant that may use all NICs.
fn tenant(name: &str) -> Tenant {
    Tenant { name: name.to_owned(), ..Tenant::default() }
}

/// Changes as an operator makes them.
trait Changes {
    fn whatif(&self, change: &WhatIf, tenant: &str) -> Result<Evaluated, JobError>;
    fn change(&mut self, change: &WhatIf, tenant: &str) -> Changed;

    fn place(&mut self, new: &NewJob, tenant: &str) -> Changed {
        self.change(&WhatIf { add: Some(new.clone()), ..WhatIf::default() }, tenant)
    }

    fn remove(&mut self, tenant: &str, name: &str) -> Changed {
        self.change(&WhatIf { remove: names(&[name]), ..WhatIf::default() }, tenant)
    }

    fn drain(&mut self, names: &[String]) -> Changed {
        self.change(&WhatIf { drain: names.to_vec(), ..WhatIf::default() }, "ai")
    }

    fn release(&mut self, names: &[String]) -> Changed {
        self.change(&WhatIf { release: names.to_vec(), ..WhatIf::default() }, "ai")
    }
}

impl Changes for Jobs {
    fn whatif(&self, change: &WhatIf, owner: &str) -> Result<Evaluated, JobError> {
        self.evaluate(change, &tenant(owner), None, Deadline::NONE)
    }

    fn change(&mut self, change: &WhatIf, owner: &str) -> Changed {
        let evaluated = self.whatif(change, owner)?;
        assert!(self.apply(&evaluated), "no other change was made");
        let JobRows { chunks, rows } = evaluated.rows;
        Ok((chunks.into_iter().chain(rows).collect(), evaluated.answer))
    }
}

fn new(text: &str) -> NewJob {
    NewJob { jobs: text.to_owned() }
}

/// A job with a ring of these NICs.
fn ring(name: &str, nics: &str) -> String {
    format!("[[job]]\nname = \"{name}\"\nnics = [{nics}]\n[[job.collective]]\nkind = \"all-reduce-ring\"\n")
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A store of rows.
#[derive(Default)]
struct Stored(BTreeMap<String, Vec<u8>>);

impl Stored {
    fn take(&mut self, rows: Vec<JobRow>) {
        for JobRow { key, value } in rows {
            match value {
                Some(value) => drop(self.0.insert(key, value)),
                None => assert!(self.0.remove(&key).is_some(), "{key} was not there"),
            }
        }
    }

    fn rows(&self) -> Vec<JobRow> {
        self.0.iter().map(|(key, value)| JobRow { key: key.clone(), value: Some(value.clone()) }).collect()
    }

    /// State of a controller that starts now.
    fn restart(&self, fabric: &str) -> Jobs {
        let mut jobs = jobs_on(fabric);
        assert_eq!(jobs.restore(&self.rows()), Ok(vec![]));
        jobs
    }
}

fn flows(jobs: &Jobs) -> Vec<PlacedFlow> {
    let all = jobs.page(None, None, 1000).jobs;
    all.iter().flat_map(|job| jobs.get(&job.tenant, &job.name).unwrap().flows).collect()
}

/// PP-4-1, PP-4-2: the paths of section 5.2 of the draft, as programs; and of section 5.3 once spine 5 is drained.
#[test]
fn the_jobs_of_the_draft_have_the_programs_of_the_draft() {
    let mut jobs = jobs_on(FIGURE1);
    let (_, placed) = jobs.place(&new(FIGURE1_JOBS), "ai").unwrap();
    let programs: Vec<&str> = placed.added.iter().map(|flow| flow.program[0].as_str()).collect();
    assert_eq!(programs, ["5f00:0:100:500:300::", "5f00:0:200:600:400::"]);
    assert_eq!((placed.before, placed.after, placed.bound), (0.0, 1.0, 1.0));
    let (_, drained) = jobs.drain(&names(&["spine5"])).unwrap();
    assert_eq!(drained.moved.len(), 1);
    assert_eq!(drained.moved[0].path, ["nic1", "leaf1", "spine6", "leaf3", "nic3"]);
    assert_eq!(drained.moved[0].program, ["5f00:0:100:600:300::"]);
    assert_eq!(jobs.get("ai", "gpu1-gpu3").unwrap().flows, drained.moved);
    let (_, released) = jobs.release(&names(&["spine5"])).unwrap();
    assert_eq!(released.moved, [], "no move reduces the load");
}

/// After every step a restarted controller has the same state, and the next step has the same result.
#[test]
fn a_restart_changes_nothing() {
    type Step = fn(&mut Jobs) -> Changed;
    let steps: [Step; 8] = [
        |jobs| jobs.place(&new(&ring("a", "\"h1.*\", \"h2.*\", \"h3.*\"")), "one"),
        |jobs| jobs.place(&new(&ring("b", "\"h2.1\", \"h4.1\", \"h1.2\", \"h3.3\"")), "two"),
        |jobs| jobs.drain(&names(&["spine2"])),
        |jobs| jobs.place(&new(&ring("c", "\"h4.*\", \"h1.*\"")), "two"),
        |jobs| jobs.drain(&names(&["leaf1-spine1"])),
        |jobs| jobs.remove("two", "b"),
        |jobs| jobs.release(&names(&["spine2"])),
        |jobs| jobs.place(&new(&ring("b", "\"h2.2\", \"h4.4\", \"h1.3\", \"h3.1\"")), "one"),
    ];
    let (mut jobs, mut stored) = (jobs_on(LEAF_SPINE), Stored::default());
    for (number, step) in steps.iter().enumerate() {
        let mut again = stored.restart(LEAF_SPINE);
        let outcome = step(&mut jobs).unwrap();
        assert_eq!(step(&mut again).unwrap(), outcome, "step {number}");
        stored.take(outcome.0);
        let mut all = jobs.rows();
        all.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!(stored.rows(), all);
        assert_eq!(flows(&stored.restart(LEAF_SPINE)), flows(&jobs), "step {number}");
    }
}

#[test]
fn a_what_if_changes_nothing_and_predicts_the_change() {
    let mut jobs = jobs_on(RAIL);
    jobs.place(&new(RAIL_JOBS), "ai").unwrap();
    let before = jobs.rows();
    let job = jobs.page(None, None, 1).jobs[0].name.clone();
    let questions = [
        WhatIf { drain: names(&["spine2"]), ..WhatIf::default() },
        WhatIf { remove: vec![job.clone()], ..WhatIf::default() },
        WhatIf { remove: vec![job.clone()], add: Some(new(RAIL_JOBS)), ..WhatIf::default() },
    ];
    let answers: Vec<WhatIfAnswer> =
        questions.iter().map(|question| jobs.whatif(question, "ai").unwrap().answer).collect();
    assert_eq!(jobs.rows(), before, "what-if changes nothing");
    assert!(answers[2].removed > 0 && answers[2].added.len() == answers[2].removed as usize);
    let (_, drained) = jobs.clone().drain(&names(&["spine2"])).unwrap();
    assert_eq!(drained, answers[0]);
    let (_, removed) = jobs.remove("ai", &job).unwrap();
    assert_eq!(removed, answers[1]);
}

/// Others move only where that reduces the load.
#[test]
fn a_drain_moves_the_flows_of_drained_links() {
    let mut jobs = jobs_on(RAIL);
    jobs.place(&new(RAIL_JOBS), "ai").unwrap();
    let before = flows(&jobs);
    let uses_spine = |flow: &&PlacedFlow| flow.path.contains(&"spine2".to_owned());
    let there = before.iter().filter(uses_spine).count();
    let (_, drained) = jobs.drain(&names(&["spine2"])).unwrap();
    assert!(there > 0 && there < before.len() / 2, "{there} of {}", before.len());
    assert!(drained.moved.len() <= there + there / 4, "{} moved, {there} had to", drained.moved.len());
    let after = flows(&jobs);
    assert_eq!(after.iter().filter(uses_spine).count(), 0);
    let changed = before.iter().zip(&after).filter(|(before, after)| before.path != after.path).count();
    assert_eq!(changed, drained.moved.len());
}

#[test]
fn versions_rise_with_each_change_of_a_job_and_are_not_reused() {
    let mut jobs = jobs_on(FIGURE1);
    jobs.place(&new(FIGURE1_JOBS), "ai").unwrap();
    let version = |jobs: &Jobs, name: &str| jobs.get("ai", name).unwrap().version;
    let first = [version(&jobs, "gpu1-gpu3"), version(&jobs, "gpu2-gpu3")];
    jobs.drain(&names(&["spine5"])).unwrap();
    let second = [version(&jobs, "gpu1-gpu3"), version(&jobs, "gpu2-gpu3")];
    assert!(second[0] > first[0], "it has moved");
    assert_eq!(second[1], first[1], "it has not");
    jobs.remove("ai", "gpu1-gpu3").unwrap();
    let only = FIGURE1_JOBS.split("[[job]]").nth(1).unwrap();
    jobs.place(&new(&format!("[[job]]{only}")), "ai").unwrap();
    assert!(version(&jobs, "gpu1-gpu3") > second[0], "another job of the same name");
}

#[test]
fn jobs_are_listed_in_pages_and_by_tenant() {
    let mut jobs = jobs_on(LEAF_SPINE);
    for (name, tenant) in [("c", "one"), ("a", "one"), ("b", "two"), ("d", "one")] {
        jobs.place(&new(&ring(name, "\"h1.1\", \"h2.1\"")), tenant).unwrap();
    }
    let page = |tenant, after, limit| {
        let page = jobs.page(tenant, after, limit);
        (page.jobs.into_iter().map(|job| job.name).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(page(None, None, 3), (names(&["a", "c", "d"]), Some("one/d".to_owned())));
    assert_eq!(page(None, Some("one/d"), 3), (names(&["b"]), None));
    assert_eq!(page(Some("one"), None, 3), (names(&["a", "c", "d"]), None));
    assert_eq!(page(Some("one"), Some("a"), 1), (names(&["c"]), Some("one/c".to_owned())));
    assert_eq!(page(Some("one"), Some("one/c"), 1), (names(&["d"]), None));
    assert_eq!(page(Some("two"), Some("one/a"), 1), (names(&["b"]), None), "from the first of its own");
    assert_eq!(page(Some("one"), Some("two/a"), 1), (vec![], None));
    assert_eq!(page(Some("none"), None, 0), (vec![], None));
}

#[test]
fn invalid_changes_are_rejected_by_name_and_change_nothing() {
    let mut jobs = jobs_on(LEAF_SPINE);
    jobs.place(&new(&ring("train", "\"h1.1\", \"h2.1\"")), "ai").unwrap();
    let before = jobs.rows();
    let mut refused = |text: &str| jobs.place(&new(text), "ai").unwrap_err();
    let name = |name: &str| name.to_owned();
    assert_eq!(refused(&ring("train", "\"h1.1\", \"h2.1\"")), JobError::Exists { name: name("train") });
    assert_eq!(refused(&ring("a/b", "\"h1.1\", \"h2.1\"")), JobError::Name { name: name("a/b") });
    assert_eq!(refused(&ring("alone", "\"h1.1\"")), JobError::NoFlows { name: name("alone") });
    assert_eq!(refused("job = []\n"), JobError::NoJobs);
    let found = refused("[[job]]\nname = \"j\"\nnics = [\"h1.1\", \"h9.1\"]\n").to_string();
    assert_eq!(found, "invalid jobs file: line 3: h9.1 is no NIC of this fabric");
    assert_eq!(jobs.remove("ai", "other"), Err(JobError::Unknown { name: name("other") }));
    assert_eq!(jobs.get("ai", "other"), Err(JobError::Unknown { name: name("other") }));
    let unknown = Err(JobError::UnknownLink { name: name("spine9") });
    assert_eq!(jobs.drain(&names(&["spine1", "spine9"])), unknown);
    assert_eq!(jobs.release(&names(&["spine9"])), unknown);
    let found = jobs.drain(&names(&["leaf1-h1.1"])).unwrap_err();
    assert!(matches!(&found, JobError::Disconnects { names, .. } if names == "leaf1-h1.1"), "{found}");
    assert!(found.to_string().contains("h1.1 would be cut off"), "{found}");
    assert_eq!(jobs.rows(), before);
}

/// Also if a short text describes them.
#[test]
fn too_many_flows_are_rejected_before_they_are_placed() {
    let mut jobs = jobs_on("kind = \"leaf-spine\"\nleaves = 32\nspines = 4\nhosts_per_leaf = 32\n");
    let all = "[[job]]\nname = \"all\"\nnics = [\"h*\"]\n[[job.collective]]\nkind = \"all-to-all\"\n";
    let found = jobs.place(&new(all), "ai").unwrap_err();
    let quota = |found| JobError::FlowQuota { tenant: "ai".to_owned(), found, has: 0, most: MAX_FLOWS };
    assert_eq!(found, quota(1024 * 1023));
    let stars = vec!["\"h*\""; 1025].join(", ");
    let found = jobs.place(&new(&ring("stars", &stars)), "ai").unwrap_err();
    assert_eq!(found.to_string(), "invalid jobs file: line 3: the jobs have more than 1048576 ranks together");
    let nothing = "[[job.collective]]\nkind = \"all-gather\"\ngroup = \"tensor\"\n".repeat(300);
    let idle = format!("[[job]]\nname = \"idle\"\nnics = [\"h*\"]\n{nothing}");
    let found = jobs.place(&new(&idle), "ai").unwrap_err();
    assert_eq!(found, quota(300 * 1024));
}

#[test]
fn flows_on_failed_links_move_at_a_restart() {
    let mut jobs = jobs_on(FIGURE1);
    let mut stored = Stored::default();
    stored.take(jobs.place(&new(FIGURE1_JOBS), "ai").unwrap().0);
    let failed = format!("{FIGURE1}\n[[failed]]\nname = \"spine5\"\n");
    let mut later = jobs_on(&failed);
    let rows = later.restore(&stored.rows()).unwrap();
    assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["job/ai/gpu1-gpu3", "drained"]);
    assert_eq!(later.get("ai", "gpu1-gpu3").unwrap().flows[0].program, ["5f00:0:100:600:300::"]);
    stored.take(rows);
    assert_eq!(flows(&stored.restart(&failed)), flows(&later));
    let link = later.release(&names(&["spine5"])).unwrap_err();
    assert_eq!(link, JobError::Failed { link: "leaf1-spine5".to_owned() });
}

#[test]
fn invalid_rows_are_rejected_by_key() {
    let row = |key: &str, value: &str| JobRow { key: key.to_owned(), value: Some(value.as_bytes().to_vec()) };
    let refused = |row| jobs_on(FIGURE1).restore(&[row]).unwrap_err().to_string();
    assert!(refused(row("job/a", "{")).starts_with("the store's row job/a: EOF"));
    let flow = r#"{"number":0,"job":"a","collective":"c","from":"nic1","to":"nic3","rate_bits_per_s":1,"path":["x"]}"#;
    let job = format!(r#"{{"tenant":"t","version":1,"flows":[{flow}]}}"#);
    let expected = "the store's row job/a: flow 0: the plan names x, which is no link of its fabric";
    assert_eq!(refused(row("job/a", &job)), expected);
    assert_eq!(refused(row("job/b", &job)), "the store's row job/b: flow 0 is of job a");
    assert_eq!(refused(row("job/b/a", &job)), "the store's row job/b/a: it is of tenant t");
    let torn = job.replace("\"x\"", "\"nic1-leaf1\"");
    assert!(refused(row("job/a", &torn)).starts_with("the stored jobs do not fit the fabric file: the flow from nic1"));
    let drained = r#"{"changes":1,"links":["leaf9-spine5"]}"#;
    let expected = "the store's row drained: the plan names leaf9-spine5, which is no link of its fabric";
    assert_eq!(refused(row("drained", drained)), expected);
    assert_eq!(refused(row("group/1", "{}")), "the store's row group/1: not a row of a job");
}

/// Rows of programs for which names were unique among tenants are read, and get their present keys.
#[test]
fn rows_without_a_tenant_in_their_key_are_renamed() {
    let mut jobs = jobs_on(FIGURE1);
    let (rows, _) = jobs.place(&new(FIGURE1_JOBS), "ai").unwrap();
    let former = |row: &JobRow| JobRow { key: row.key.replace("job/ai/", "job/"), value: row.value.clone() };
    let former: Vec<JobRow> = rows.iter().map(former).collect();
    let mut stored = Stored::default();
    stored.take(former.clone());
    let mut again = jobs_on(FIGURE1);
    stored.take(again.restore(&former).unwrap());
    assert_eq!(stored.0.keys().collect::<Vec<_>>(), ["drained", "job/ai/gpu1-gpu3", "job/ai/gpu2-gpu3"]);
    assert_eq!(flows(&stored.restart(FIGURE1)), flows(&jobs));
}

/// D103: the flows of a large job are written in chunks, before the job; a change of the job replaces them.
#[test]
fn large_jobs_are_stored_in_parts() {
    let fabric = LEAF_SPINE.replace("hosts_per_leaf = 4", "hosts_per_leaf = 16");
    let mut jobs = jobs_on(&fabric);
    let job = "[[job]]\nname = \"x\"\nnics = [\"h*\"]\n[[job.collective]]\nkind = \"all-to-all\"\n";
    let add = WhatIf { add: Some(new(job)), ..WhatIf::default() };
    let evaluated = jobs.whatif(&add, "ai").unwrap();
    assert!(jobs.apply(&evaluated));
    let JobRows { chunks, rows } = evaluated.rows;
    assert_eq!((chunks.len(), rows.len()), (4, 2), "64 x 63 flows");
    let mut stored = Stored::default();
    stored.take(chunks.clone());
    // The controller ended before the change was made.
    let mut next = jobs_on(&fabric);
    let undo = next.restore(&stored.rows()).unwrap();
    let deleted = |chunk: &JobRow| JobRow { key: chunk.key.clone(), value: None };
    assert_eq!(undo, chunks.iter().map(deleted).collect::<Vec<_>>());
    assert_eq!(flows(&next), []);

    stored.take(rows);
    let torn: Vec<JobRow> = stored.rows().into_iter().filter(|row| row.key != chunks[2].key).collect();
    let refused = jobs_on(&fabric).restore(&torn).unwrap_err();
    assert_eq!(refused.to_string(), format!("the store's row job/ai/x: row {} is missing", chunks[2].key));
    let mut jobs = stored.restart(&fabric);
    assert_eq!(flows(&jobs).len(), 64 * 63);
    stored.take(jobs.drain(&names(&["spine1"])).unwrap().0);
    let left = stored.0.keys().filter(|key| key.starts_with("job-chunk/")).count();
    assert_eq!((left, stored.0.contains_key(&chunks[0].key)), (4, false), "the moved flows are in new chunks");
    assert_eq!(flows(&stored.restart(&fabric)), flows(&jobs));
    stored.take(jobs.remove("ai", "x").unwrap().0);
    assert_eq!(stored.0.keys().collect::<Vec<_>>(), ["drained"]);
}

/// D103: a change that was evaluated on an earlier state is not made.
#[test]
fn a_change_of_an_earlier_state_is_not_made() {
    let mut jobs = jobs_on(LEAF_SPINE);
    let add = |name: &str| WhatIf { add: Some(new(&ring(name, "\"h1.1\", \"h2.1\""))), ..WhatIf::default() };
    let snapshot = jobs.clone();
    let [first, second] = ["a", "b"].map(|name| snapshot.whatif(&add(name), "ai").unwrap());
    assert!(jobs.apply(&first));
    assert!(!jobs.apply(&second) && !jobs.apply(&first), "the state is another one");
    assert_eq!(jobs.page(None, None, 9).jobs.len(), 1);
    assert!(snapshot.page(None, None, 9).jobs.is_empty(), "a snapshot stays");
    let again = jobs.whatif(&add("b"), "ai").unwrap();
    assert!(jobs.apply(&again));
}

/// D103: at the deadline a change ends with a path for each flow, and says so.
#[test]
fn a_deadline_ends_the_improvement_of_paths() {
    let jobs = jobs_on(
        "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n[[failed]]\nname = \"leaf1-spine1\"\n",
    );
    let collective = "[[job.collective]]\nkind = \"all-to-all\"\n";
    let add = new(&format!("[[job]]\nname = \"all\"\nnics = [\"h*\"]\n{collective}"));
    let change = WhatIf { add: Some(add), ..WhatIf::default() };
    let full = jobs.whatif(&change, "ai").unwrap().answer;
    assert!(!full.is_cut_short);
    let placing = || Phase::Place;
    let short = jobs.evaluate(&change, &tenant("ai"), None, Deadline::of(&placing)).unwrap().answer;
    assert!(short.is_cut_short && short.added.len() == full.added.len() && short.after >= full.after);
    assert!(short.added.iter().all(|flow| flow.path.len() > 2));
    let improving = || Phase::Improve;
    let same = jobs.evaluate(&change, &tenant("ai"), None, Deadline::of(&improving)).unwrap().answer;
    assert_eq!(same, full, "a deadline that does not strike changes nothing");
    let over = || Phase::Stop;
    let refused = jobs.evaluate(&change, &tenant("ai"), None, Deadline::of(&over));
    assert_eq!(refused.unwrap_err(), JobError::TimeOver);
}

/// D104: names are of a tenant, and its answers have its own flows only.
#[test]
fn tenants_see_their_own_jobs_only() {
    let mut jobs = jobs_on(RAIL);
    let all = "[[job]]\nname = \"train\"\nnics = [\"*\"]\n[[job.collective]]\nkind = \"all-to-all\"\n";
    jobs.place(&new(all), "b").unwrap();
    let first = &flows(&jobs)[0];
    let nics = format!("\"{}\", \"{}\"", first.from, first.to);
    let own = WhatIf { add: Some(new(&ring("train", &nics))), ..WhatIf::default() };
    let answer = jobs.evaluate(&own, &tenant("a"), Some("a"), Deadline::NONE).unwrap().answer;
    let operator = jobs.evaluate(&own, &tenant("a"), None, Deadline::NONE).unwrap().answer;
    assert!(operator.before > 0.0 && operator.after > answer.after, "{operator:?}");
    assert_eq!(answer.before, 0.0, "it has no flow yet");
    assert_eq!(answer.moved.len() + answer.moved_of_others as usize, operator.moved.len());
    assert!(answer.added.iter().chain(&answer.moved).all(|flow| flow.tenant == "a"));
    assert!(answer.bound <= answer.after);
    jobs.change(&own, "a").unwrap();
    assert_eq!(jobs.page(Some("a"), None, 9).jobs.len(), 1);
    jobs.remove("a", "train").unwrap();
    assert_eq!(jobs.get("a", "train"), Err(JobError::Unknown { name: "train".to_owned() }));
    assert!(jobs.get("b", "train").is_ok(), "the other tenant's job of this name stays");
}

/// A drain counts the moved flows of others for a tenant, without their names.
#[test]
fn moved_flows_of_others_are_counted() {
    let mut jobs = jobs_on(FIGURE1);
    jobs.place(&new(FIGURE1_JOBS), "b").unwrap();
    let drain = WhatIf { drain: names(&["spine5"]), ..WhatIf::default() };
    let answer = jobs.evaluate(&drain, &tenant("a"), Some("a"), Deadline::NONE).unwrap().answer;
    assert_eq!((answer.moved.len(), answer.moved_of_others, answer.after, answer.bound), (0, 1, 0.0, 0.0));
    let all = jobs.evaluate(&drain, &tenant("a"), None, Deadline::NONE).unwrap().answer;
    assert_eq!((all.moved.len(), all.moved_of_others), (1, 0));
}

/// D104: a tenant has its NICs, its number and its quotas.
#[test]
fn a_tenant_is_limited_to_its_nics_number_and_quotas() {
    let mut jobs = jobs_on(LEAF_SPINE);
    let limited = Tenant {
        nics: names(&["h1.*", "h2.1"]),
        number: Some(7),
        jobs: 2,
        flows: 5,
        has_all_nics: false,
        ..tenant("a")
    };
    let evaluate = |jobs: &Jobs, text: &str| {
        let change = WhatIf { add: Some(new(text)), ..WhatIf::default() };
        jobs.evaluate(&change, &limited, Some("a"), Deadline::NONE)
    };
    let refused = |jobs: &Jobs, text: &str| evaluate(jobs, text).unwrap_err();
    let foreign = refused(&jobs, &ring("j", "\"h1.1\", \"h2.2\""));
    assert_eq!(foreign.to_string(), "job j: h2.2 is in no `nics` of tenant a");
    let numbered = ring("j", "\"h1.1\", \"h2.1\"").replace("[[job.c", "tenant = 8\n[[job.c");
    assert_eq!(refused(&jobs, &numbered).to_string(), "job j: tenant 8 is not the number of tenant a");
    let ends = |text: &str| {
        let placed = evaluate(&jobs, text).unwrap().answer;
        placed.added.iter().map(|flow| flow.program.last().unwrap().clone()).collect::<Vec<_>>()
    };
    let own = ends(&numbered.replace("tenant = 8", "tenant = 7"));
    assert_eq!(ends(&ring("j", "\"h1.1\", \"h2.1\"")), own, "its number is the default");
    let found = refused(&jobs, &ring("j", "\"h1.1\", \"h1.2\", \"h1.3\", \"h1.4\", \"h2.1\", \"h1.1\""));
    assert!(matches!(found, JobError::FlowQuota { found: 6, has: 0, most: 5, .. }), "{found}");
    for name in ["j", "k"] {
        let evaluated = evaluate(&jobs, &ring(name, "\"h1.1\", \"h2.1\"")).unwrap();
        assert!(jobs.apply(&evaluated));
    }
    let found = refused(&jobs, &ring("l", "\"h1.1\", \"h2.1\""));
    assert!(matches!(found, JobError::JobQuota { found: 1, has: 2, most: 2, .. }), "{found}");
    jobs.remove("a", "k").unwrap();
    let found = refused(&jobs, &ring("l", "\"h1.1\", \"h1.2\", \"h1.3\", \"h2.1\""));
    assert!(matches!(found, JobError::FlowQuota { found: 4, has: 2, most: 5, .. }), "{found}");
    assert!(evaluate(&jobs, &ring("l", "\"h1.1\", \"h1.2\", \"h2.1\"")).is_ok());
}
