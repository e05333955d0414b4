//! Scripts of requests, times and restarts of a controller.

use super::site::{Kept, Site};
use crate::choices::Choices;
use serde::Serialize;
use serde::de::DeserializeOwned;
use srdma_api::{
    CommitRequest, DrainRequest, NewGroup, NewJob, NewReceiver, NodeIdentity, ReceiverReport, Registration,
    RenameRequest, SourceReport, SourceService, Sync, WhatIf,
};
use srdma_controller_core::{Deadline, JobRequest, MAX_FLOWS};
use std::fmt::Debug;
use std::sync::Arc;

/// Steps of a script, at most.
const MAX_STEPS: usize = 32;

/// Requests of operators, tenants, sources, receivers and nodes: honest nodes execute what they are ordered, others
/// send anything. A refused request writes nothing; a controller starts with whatever it has written, and has the same
/// nodes, groups and receivers.
pub fn requests(input: &[u8]) {
    let mut site = Site::new();
    let mut choices = Choices::new(input);
    for _ in 0..MAX_STEPS {
        if choices.is_empty() {
            break;
        }
        step(&mut site, &mut choices);
    }
    site.flush();
    let before = Kept::of(site.core());
    assert_eq!(site.row_count("group/"), before.groups.len(), "a row for each group");
    assert!(site.row_count("record/") <= before.groups.len(), "a record of no group");
    let members: usize = before.groups.values().map(|group| group.receivers.len()).sum();
    assert!(site.row_count("member/") <= members, "more rows of receivers than receivers");
    site.restart(false);
    before.is_kept_by(&Kept::of(site.core()));
    site.settle();
    site.pass(100);
    site.settle();
}

fn step(site: &mut Site, choices: &mut Choices<'_>) {
    let by = choices.principal();
    match choices.below(32) {
        0..3 => site.settle(),
        3 => site.flush(),
        4 => {
            site.sync(choices.node());
        }
        5 => site.pass(choices.of(&[100, 1, 1000, 3001, 30_001])),
        6 | 7 => {
            let (tenant, group) = (choices.tenant(), choices.new_group());
            site.request(|core| core.create_group(&by, tenant, group));
        }
        8..11 => {
            let (group, address, receiver) = (choices.group(), choices.host(), choices.new_receiver());
            let version = choices.version();
            site.request(|core| core.join(&by, group, address, receiver, version));
        }
        11 => {
            let (group, address, version) = (choices.group(), choices.host(), choices.version());
            site.request(|core| core.leave(&by, group, address, version));
        }
        12 | 13 => {
            let (group, version) = (choices.group(), choices.version());
            site.request(|core| core.commit_group(&by, group, version));
        }
        14 => {
            let (group, version) = (choices.group(), choices.version());
            site.request(|core| core.close_group(&by, group, version));
        }
        15 => {
            let (group, report) = (choices.group(), choices.source_report());
            site.request(|core| core.report_source(&by, group, report));
        }
        16 => {
            let (group, address, receiver) = (choices.group(), choices.host(), choices.new_receiver());
            site.request(|core| core.reserve(&by, group, address, receiver, None));
        }
        17 => {
            let (group, address, report) = (choices.group(), choices.host(), choices.receiver_report());
            site.request(|core| core.report_receiver(&by, group, address, report));
        }
        18 => {
            let (group, service) = (choices.group(), choices.service());
            site.request(|core| core.state_service(&by, group, service));
        }
        19 => {
            let held = site.held(choices.node());
            let registration = choices.registration(held);
            site.request(|core| core.register(&by, registration));
        }
        20 => any_sync(site, choices),
        21 => {
            let (name, report) = (choices.node_name(), choices.unreachable());
            site.request(|core| core.note_unreachable(&by, &name, &report));
        }
        22 => operate(site, choices),
        23 => site.reinstall(choices.node()),
        24 => site.restart(choices.rarely(4)),
        25 => answer_again(site, choices),
        26 => place(site, choices),
        27 => read(site, choices),
        _ => any_body(site, choices),
    }
}

/// Changes of nodes and of groups of other stores, by an operator.
fn operate(site: &mut Site, choices: &mut Choices<'_>) {
    let (by, name) = (choices.principal(), choices.node_name());
    match choices.below(6) {
        0 => {
            let is_drained = choices.rarely(2);
            site.request(|core| core.drain_node(&by, &name, is_drained));
        }
        1 => {
            site.request(|core| core.remove_node(&by, &name));
        }
        2 => {
            let new = choices.text();
            site.request(|core| core.rename_node(&by, &name, &new));
        }
        3 => {
            let identity = choices.identity();
            site.request(|core| core.confirm_node(&by, &name, &identity));
        }
        4 => {
            let (store, group) = (choices.of(&[1, 2, 0, u64::MAX]), choices.group());
            site.request(|core| core.remove_foreign(&by, store, group));
        }
        _ => {
            let (store, group) = (choices.of(&[1, 2, 0, u64::MAX]), choices.group());
            site.request(|core| core.adopt_foreign(&by, store, group));
        }
    }
}

/// A node reports anything.
fn any_sync(site: &mut Site, choices: &mut Choices<'_>) {
    let (by, number) = (choices.principal(), choices.node());
    let held = site.held(number);
    let session = if choices.rarely(4) { choices.u64() } else { site.session(number) };
    let sync = Sync {
        session,
        answers: (0..choices.below(4)).map(|_| choices.node_answer(&held)).collect(),
        eviction_requests: (0..choices.below(3)).map(|_| choices.eviction_request()).collect(),
        status: choices.rarely(2).then(|| choices.node_status()),
        wait_ms: 0,
    };
    site.request(|core| core.sync(&by, &super::site::name_of(number), sync));
}

/// A request with an idempotency key, which is answered as before.
fn answer_again(site: &mut Site, choices: &mut Choices<'_>) {
    let (by, key, digest) = (choices.principal(), choices.text(), choices.text());
    let kept = site.request(|core| Ok(core.stored_answer(&by, &key, &digest)?.is_some()));
    if kept == Some(false) {
        site.act(|core| core.store_answer(&by, &key, digest.clone(), 201, "{}".to_owned()));
        let again = site.request(|core| Ok(core.stored_answer(&by, &key, &digest)?.is_some()));
        assert_eq!(again, Some(true), "a stored answer is found");
    }
}

/// A change of jobs.
fn place(site: &mut Site, choices: &mut Choices<'_>) {
    const JOBS: [&str; 3] = [
        "[[job]]\nname = \"a\"\nnics = [\"*\"]\n[[job.collective]]\nkind = \"all-reduce-ring\"\n",
        "[[job]]\nname = \"b\"\nnics = [\"*\"]\n[[job.collective]]\nkind = \"all-to-all\"\n",
        "",
    ];
    let (by, tenant) = (choices.principal(), choices.tenant().map(str::to_owned));
    let text = match choices.below(JOBS.len() + 1) {
        3 => String::from_utf8_lossy(choices.octets(256)).into_owned(),
        position => JOBS[position].to_owned(),
    };
    let request = match choices.below(4) {
        0 => JobRequest::place(tenant, NewJob { jobs: text }),
        1 => JobRequest::remove(tenant, choices.text()),
        2 => JobRequest::drain(vec![choices.text()], choices.rarely(2)),
        _ => JobRequest::what_if(tenant, WhatIf { add: Some(NewJob { jobs: text }), ..WhatIf::default() }),
    };
    let outcome = site.request(|core| core.job_task(&by, &Arc::new(request))?.run(Deadline::NONE));
    let Some(mut outcome) = outcome.filter(srdma_controller_core::JobOutcome::is_change) else { return };
    assert!(outcome.answer().added.len() as u64 <= MAX_FLOWS);
    let (chunks, _) = outcome.take_chunks();
    site.act(|core| {
        chunks.into_iter().for_each(|chunk| core.write_chunk(chunk));
        assert!(core.apply_jobs(&mut outcome), "no other change was made meanwhile");
    });
}

/// Pages of every list, from anywhere.
fn read(site: &Site, choices: &mut Choices<'_>) {
    let (by, after, limit) =
        (choices.principal(), choices.text(), choices.of(&[None, Some(1), Some(0), Some(usize::MAX)]));
    let (core, tenant, group, host) = (site.core(), choices.tenant(), choices.group(), choices.host());
    let pages = [
        core.groups(&by, tenant, Some(group), limit).map(|page| serde_json::to_string(&page)),
        core.nodes(&by, Some(&after), limit).map(|page| serde_json::to_string(&page)),
        core.job_page(&by, tenant, Some(&after), limit).map(|page| serde_json::to_string(&page)),
        core.topology(&by, site.now_ms).map(|topology| serde_json::to_string(&topology)),
        core.group(&by, group).map(|(group, _)| serde_json::to_string(&group)),
        core.successor(&by, group).map(|(group, _)| serde_json::to_string(&group)),
        core.receiver(&by, group, host).map(|(receiver, _)| serde_json::to_string(&receiver)),
        core.foreign_groups(&by).map(|groups| serde_json::to_string(&groups)),
    ];
    for page in pages {
        match page {
            Ok(text) => assert!(text.is_ok(), "{text:?}"),
            Err(refusal) => assert!(!refusal.detail.is_empty(), "{refusal:?}"),
        }
    }
    let _ = (core.receiver_order(group, host, 0x1000), core.source_order(group), core.is_reserving(group));
}

/// Any octets as the body of a request.
fn any_body(site: &mut Site, choices: &mut Choices<'_>) {
    let (by, group, name, host) = (choices.principal(), choices.group(), choices.node_name(), choices.host());
    let kind = choices.below(12);
    let len = usize::from(choices.u16());
    let octets = choices.octets(len);
    match kind {
        0 => accepted(octets, |body: NewGroup| site.request(|core| core.create_group(&by, None, body))),
        1 => accepted(octets, |body: NewReceiver| site.request(|core| core.join(&by, group, host, body, None))),
        2 => accepted(octets, |body: Registration| site.request(|core| core.register(&by, body))),
        3 => accepted(octets, |body: Sync| site.request(|core| core.sync(&by, &name, body))),
        4 => accepted(octets, |body: SourceReport| site.request(|core| core.report_source(&by, group, body))),
        5 => accepted(octets, |body: ReceiverReport| site.request(|core| core.report_receiver(&by, group, host, body))),
        6 => accepted(octets, |body: NodeIdentity| site.request(|core| core.confirm_node(&by, &name, &body))),
        7 => accepted(octets, |body: SourceService| site.request(|core| core.state_service(&by, group, body))),
        8 => accepted(octets, |body: RenameRequest| site.request(|core| core.rename_node(&by, &name, &body.name))),
        9 => accepted(octets, |body: DrainRequest| site.request(|core| core.drain_node(&by, &name, body.drained))),
        10 => accepted(octets, |_: CommitRequest| site.request(|core| core.commit_group(&by, group, None))),
        _ => accepted(octets, |body: WhatIf| {
            let request = Arc::new(JobRequest::what_if(None, body));
            site.request(|core| core.job_task(&by, &request)?.run(Deadline::NONE))
        }),
    }
}

/// Makes a request of a body, if it is one. It means the same when it is written and read again.
fn accepted<T, R>(octets: &[u8], request: impl FnOnce(T) -> Option<R>)
where
    T: DeserializeOwned + Serialize + PartialEq + Debug,
{
    let Ok(body) = serde_json::from_slice::<T>(octets) else { return };
    let written = serde_json::to_vec(&body).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<T>(&written).as_ref().ok(), Some(&body));
    request(body);
}
