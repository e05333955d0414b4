//! The recorded messages of the protocol before (D112), and those of a newer one, as this version reads them.

use crate::{
    FIRST_PROTOCOL, NodeAnswer, NodeOrder, NodeStatus, Problem, ProblemType, Registration, Session, Sync, SyncAnswer,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn exchanges() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../../testdata/protocol/1.json")).unwrap()
}

/// Reads a message, which is the same when it is written again.
fn read<T: DeserializeOwned + Serialize>(message: &Value) -> T {
    let value: T = serde_json::from_value(message.clone()).unwrap_or_else(|error| panic!("{error}: {message}"));
    assert_eq!(serde_json::to_value(&value).unwrap(), *message);
    value
}

/// The message with more keys in each object but group entries and names.
fn with_more_keys(message: &Value) -> Value {
    match message {
        Value::Object(members) => {
            let is_exact = |key: &str| matches!(key, "entry" | "name" | "entries" | "drops");
            let more = |(key, value): (&String, &Value)| {
                (key.clone(), if is_exact(key) { value.clone() } else { with_more_keys(value) })
            };
            let added = ("of_a_newer_version".to_owned(), json!({ "any": [1, "value"] }));
            members.iter().map(more).chain([added]).collect()
        }
        Value::Array(items) => items.iter().map(with_more_keys).collect(),
        other => other.clone(),
    }
}

/// D112: each message of protocol 1 has a meaning of its own in protocol 2, and the same one.
#[test]
fn messages_of_protocol_1_are_read() {
    let (mut orders, mut answers) = (Vec::new(), Vec::new());
    let (mut statuses, mut requests, mut held, mut problems) = (0, 0, 0, Vec::new());
    for Exchange { path, request, response } in exchanges().iter().map(exchange) {
        let is_refused = response.get("type").is_some();
        if is_refused {
            problems.push(read::<Problem>(response).problem_type());
        }
        if path == "/v1/nodes" {
            let registration = serde_json::from_value::<Registration>(request.clone()).unwrap();
            held += registration.groups.iter().filter(|held| !held.recovery_snapshots.is_empty()).count();
            if !is_refused {
                assert_eq!(read::<Registration>(request).protocol, FIRST_PROTOCOL);
                let session: Session = serde_json::from_value(response.clone()).unwrap();
                assert_eq!((session.protocol, session.lease_ms), (FIRST_PROTOCOL, 0));
            }
            continue;
        }
        let sync: Sync = read(request);
        requests += sync.eviction_requests.len();
        statuses += sync.status.iter().filter(|status| **status != NodeStatus::default()).count();
        answers.extend(sync.answers.iter().map(|answer| match answer {
            NodeAnswer::Prepared { .. } => "prepared",
            NodeAnswer::Refused { .. } => "refused",
            NodeAnswer::Committed { .. } => "committed",
            NodeAnswer::Removed { .. } => "removed",
        }));
        if !is_refused {
            let answer: SyncAnswer = read(response);
            assert_eq!(answer.unreadable, []);
            orders.extend(answer.orders.iter().map(|order| match order {
                NodeOrder::Prepare { .. } => "prepare",
                NodeOrder::Commit { .. } => "commit",
                NodeOrder::Abort { .. } => "abort",
                NodeOrder::Restore { .. } => "restore",
                NodeOrder::Remove { .. } => "remove",
            }));
        }
    }
    orders.sort_unstable();
    orders.dedup();
    answers.sort_unstable();
    answers.dedup();
    assert_eq!(orders, ["abort", "commit", "prepare", "remove", "restore"], "all kinds are recorded");
    assert_eq!(answers, ["committed", "prepared", "refused", "removed"]);
    assert_eq!((statuses, requests, held), (1, 1, 1));
    assert_eq!(problems, [Some(ProblemType::InvalidRequest), Some(ProblemType::UnknownSession)]);
}

/// D112: keys that this version does not know change nothing.
#[test]
fn unknown_keys_of_messages_are_ignored() {
    fn same<T: DeserializeOwned + PartialEq + std::fmt::Debug>(message: &Value) {
        let (known, more) = (message.clone(), with_more_keys(message));
        assert_ne!(known, more);
        let read = |message| serde_json::from_value::<T>(message).unwrap();
        assert_eq!(read(more), read(known));
    }
    for Exchange { path, request, response } in exchanges().iter().map(exchange) {
        match (path, response.get("type")) {
            ("/v1/nodes", None) => {
                same::<Registration>(request);
                same::<Session>(response);
            }
            (_, None) => {
                same::<Sync>(request);
                same::<SyncAnswer>(response);
            }
            (_, Some(_)) => same::<Problem>(response),
        }
    }
}

/// D112: an answer of an unknown kind does not hold up the others.
#[test]
fn answers_of_an_unknown_kind_are_left_out() {
    let removed = json!({ "answer": "removed", "store": 1, "group": 2, "epoch": 3 });
    let answers = json!([{ "answer": "of-a-newer-version", "group": 1 }, removed, { "group": 1 }, 7]);
    let sync: Sync = serde_json::from_value(json!({ "session": 1, "answers": answers })).unwrap();
    assert_eq!(sync.answers, [NodeAnswer::Removed { store: 1, group: 2, epoch: 3 }]);
}

/// D112: an order that this version cannot read is refused by its name, alone.
#[test]
fn an_order_that_cannot_be_read_is_refused_alone() {
    let all = exchanges();
    let recorded = |kind: &str| {
        let orders = all.iter().flat_map(|exchange| exchange["response"]["orders"].as_array()).flatten();
        orders.clone().find(|order| order["order"] == kind).unwrap().clone()
    };
    let (prepare, commit) = (recorded("prepare"), recorded("commit"));
    let mut entry_with_more = prepare.clone();
    entry_with_more["entry"]["policy"]["of_a_newer_version"] = json!(true);
    let mut branch_with_more = prepare.clone();
    branch_with_more["entry"]["branches"][0]["of_a_newer_version"] = json!(true);
    let mut of_another_kind = commit.clone();
    of_another_kind["order"] = json!("of-a-newer-version");
    let mut name_with_more = commit.clone();
    name_with_more["name"]["of_a_newer_version"] = json!(true);
    let orders = [&entry_with_more, &branch_with_more, &of_another_kind, &name_with_more, &json!(7), &commit];
    let answer: SyncAnswer = serde_json::from_value(json!({ "orders": orders })).unwrap();
    assert_eq!(serde_json::to_value(&answer.orders).unwrap(), json!([commit]));
    let refused = |order: &Value| {
        let (kind, name) = (&order["order"], &order["name"]);
        let reason = format!("the node cannot read the order {kind}: upgrade the node");
        Some(json!({ "answer": "refused", "group": 1, "name": name, "reason": reason }))
    };
    let refusals = answer.unreadable.iter().map(|order| order.refusal().map(|answer| json!(answer)));
    let expected = [refused(&prepare), refused(&prepare), refused(&of_another_kind), None, None];
    assert_eq!(refusals.collect::<Vec<_>>(), expected);
}

struct Exchange<'a> {
    path: &'a str,
    request: &'a Value,
    response: &'a Value,
}

fn exchange(recorded: &Value) -> Exchange<'_> {
    Exchange {
        path: recorded["path"].as_str().unwrap(),
        request: &recorded["request"],
        response: &recorded["response"],
    }
}
