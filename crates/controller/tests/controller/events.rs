//! The event stream: a client that reconnects detects each event that it has missed.

use crate::running::{Running, create, until};
use srdma_api::{Client, ClientError, Event, EventKind};
use std::io::{BufRead, BufReader};

/// `count` events behind an id, each with its own id.
fn events(client: &Client, last: &str, count: usize) -> Vec<(String, Event)> {
    let stream = until("the stream", || client.events(Some(last)).ok());
    let (mut found, mut id) = (Vec::new(), String::new());
    for line in BufReader::new(stream).lines().map(Result::unwrap) {
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            found.push((id.clone(), serde_json::from_str(data).unwrap()));
        }
        if found.len() == count {
            break;
        }
    }
    found
}

fn created(event: &(String, Event)) -> Option<u32> {
    match event.1.kind {
        EventKind::GroupCreated { group } => Some(group),
        _ => None,
    }
}

#[test]
fn a_stream_resumes_behind_the_last_event() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    let ids: Vec<u32> = (1..=3).map(|number| create(&client, number).summary.id).collect();
    let seen = events(&client, "0", 2);
    assert_eq!(seen.iter().map(created).collect::<Vec<_>>(), [Some(ids[0]), Some(ids[1])]);
    // Events without a connected client follow those that were seen, once.
    let fourth = create(&client, 4).summary.id;
    let more = events(&client, &seen[1].0, 2);
    assert_eq!(more.iter().map(created).collect::<Vec<_>>(), [Some(ids[2]), Some(fourth)]);
    for wrong in ["yesterday", "1-2-3", "-1"] {
        let refused = client.events(Some(wrong)).map(drop).unwrap_err();
        assert_eq!(refused.problem().map(|problem| problem.name()), Some("invalid-request"), "{wrong}");
    }
}

#[test]
fn a_restarted_controller_reports_missed_events() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let running = Running::on_disk(&store);
    let client = running.client();
    (1..=3).for_each(|number| drop(create(&client, number)));
    let seen = events(&client, "0", 3);
    drop(running);
    let gone = client.events(Some(&seen[2].0)).map(drop).unwrap_err();
    assert!(matches!(gone, ClientError::Unreachable { .. }), "{gone}");
    let running = Running::on_disk(&store);
    let client = running.client();
    let fourth = create(&client, 4).summary.id;
    // Event numbers begin again: the last id is not one of this start.
    let more = events(&client, &seen[2].0, 2);
    assert_eq!(more[0].1.kind, EventKind::EventsMissed { missed: None });
    assert_eq!((created(&more[1]), more[1].1.number), (Some(fourth), 1));
    assert_eq!(created(&events(&client, &more[0].0, 1)[0]), Some(fourth), "it is reported once");
}
