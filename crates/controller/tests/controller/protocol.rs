//! Nodes of other versions (D112): a scripted one, which speaks as in the recorded messages, and a newer one.

use crate::fleet::{loopback, registration};
use crate::running::*;
use serde_json::{Value, json};
use srdma_api::{
    Client, FIRST_PROTOCOL, Group, GroupState, Node, PROTOCOL, ProblemType, Protocols, Registration, Session,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

fn recorded() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../../testdata/protocol/1.json")).unwrap()
}

/// How a scripted node departs from the recorded messages.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    Recorded,
    /// It states a newer protocol, its messages have more keys, and some of its answers are of unknown kinds.
    Newer,
}

impl Version {
    fn message(self, recorded: &Value) -> Value {
        match self {
            Version::Recorded => recorded.clone(),
            Version::Newer => with_more_keys(recorded),
        }
    }
}

/// The message with more keys in each object but names.
fn with_more_keys(message: &Value) -> Value {
    match message {
        Value::Object(members) => {
            let is_exact = |key: &str| matches!(key, "name" | "entries" | "drops");
            let more = |(key, value): (&String, &Value)| {
                (key.clone(), if is_exact(key) { value.clone() } else { with_more_keys(value) })
            };
            members.iter().map(more).chain([("of_a_newer_version".to_owned(), json!([7]))]).collect()
        }
        Value::Array(items) => items.iter().map(with_more_keys).collect(),
        other => other.clone(),
    }
}

/// What a scripted node has got and is to send.
#[derive(Default)]
struct Script {
    session: Value,
    /// The kinds of its orders.
    orders: Vec<String>,
    /// A report to be sent, as recorded.
    report: Option<Value>,
    /// The committed entry, as the next registration has it.
    held: Option<Value>,
}

/// A node that sends only what is recorded, with the session, names and numbers that it has got.
struct Scripted {
    script: Arc<Mutex<Script>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    /// `with_state`: it registers with the entry that it had.
    fn start(client: Client, name: &'static str, version: Version, held: Option<Value>) -> Self {
        let (script, stop) =
            (Arc::new(Mutex::new(Script { held, ..Script::default() })), Arc::new(AtomicBool::new(false)));
        let (own, ends) = (Arc::clone(&script), Arc::clone(&stop));
        let thread = std::thread::spawn(move || serve(&client, name, version, &own, &ends));
        let node = Scripted { script, stop, thread: Some(thread) };
        until("the node has registered", || node.script.lock().unwrap().session.is_object().then_some(()));
        node
    }

    /// The kinds of its orders. One that is given again, to a node that answers late, counts once.
    fn orders(&self) -> String {
        let mut orders = self.script.lock().unwrap().orders.clone();
        orders.dedup();
        orders.join(", ")
    }

    fn end(mut self) -> Option<Value> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.script.lock().unwrap().held.take()
    }
}

fn serve(client: &Client, name: &str, version: Version, script: &Mutex<Script>, ends: &AtomicBool) {
    let all = recorded();
    let is_of_node = |exchange: &&Value| exchange["node"] == name;
    let mut registrations = all.iter().filter(is_of_node).filter(|exchange| exchange["path"] == "/v1/nodes");
    let mut request = registrations.next().unwrap()["request"].clone();
    if let Some(held) = &script.lock().unwrap().held {
        request["groups"] = json!([held]);
    }
    let mut request = version.message(&request);
    if version == Version::Newer {
        request["protocol"] = json!(PROTOCOL + 1);
    }
    let session: Value = client.post("/v1/nodes", &request, None).unwrap().value;
    let number = session["session"].clone();
    script.lock().unwrap().session = session;
    let mut answers = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let poll = json!({ "answers": [], "eviction_requests": [], "wait_ms": 50 });
        let mut sync = version.message(&script.lock().unwrap().report.take().unwrap_or(poll));
        sync["session"] = number.clone();
        sync["answers"] = json!(std::mem::take(&mut answers));
        let response: Value = client.post(&format!("/v1/nodes/{name}/sync"), &sync, None).unwrap().value;
        for order in response["orders"].as_array().unwrap() {
            let like = recorded_order(&all, order);
            let mut common = order.clone();
            if version == Version::Newer && name == "N6" {
                // Of the headend's first commit (D137).
                common.as_object_mut().unwrap().remove("is_first");
            }
            assert_eq!(shape(&common), shape(like), "an order has the keys of protocol 1 alone");
            let mut script = script.lock().unwrap();
            script.orders.push(order["order"].as_str().unwrap().to_owned());
            execute(&mut script, order);
            answers.extend(answer(&all, order).map(|answer| version.message(&answer)));
        }
        if version == Version::Newer && !answers.is_empty() {
            answers.push(json!({ "answer": "of-a-newer-version", "group": 1 }));
        }
    }
}

/// The recorded order of the same kind, for a node of the same role.
fn recorded_order<'a>(all: &'a [Value], order: &Value) -> &'a Value {
    let orders = all.iter().filter_map(|exchange| exchange["response"]["orders"].as_array()).flatten();
    let is_alike = |like: &&Value| {
        let is_headend = |order: &Value| order["entry"]["headend"].is_object();
        let role = |order: &Value| order["entry"]["role"].as_str().unwrap_or("none").to_owned();
        like["order"] == order["order"].as_str().expect("an order has a kind")
            && role(like) == role(order)
            && is_headend(like) == is_headend(order)
    };
    orders.clone().find(is_alike).unwrap_or_else(|| panic!("not recorded: {order}"))
}

/// The keys of a message, with those of the objects in it; of lists the first item.
fn shape(message: &Value) -> Value {
    match message {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        Value::Array(items) => items.first().map(shape).into_iter().collect(),
        _ => Value::Null,
    }
}

/// The recorded answer to an order of this kind, about this group and entry.
fn answer(all: &[Value], order: &Value) -> Option<Value> {
    let kind = match order["order"].as_str().unwrap() {
        "prepare" => "prepared",
        "commit" | "restore" => "committed",
        "remove" => "removed",
        _ => return None,
    };
    let mut answers = all.iter().filter_map(|exchange| exchange["request"]["answers"].as_array()).flatten();
    let mut answer = answers.find(|answer| answer["answer"] == kind).unwrap().clone();
    for (key, value) in answer.as_object_mut().unwrap() {
        match key.as_str() {
            "group" => *value = group_of(order).clone(),
            "name" | "epoch" | "store" => *value = order[key].clone(),
            _ => {}
        }
    }
    Some(answer)
}

fn group_of(order: &Value) -> &Value {
    if order["group"].is_null() { &order["entry"]["id"] } else { &order["group"] }
}

/// Keeps the entry, in the form of a recorded registration.
fn execute(script: &mut Script, order: &Value) {
    match order["order"].as_str().unwrap() {
        "prepare" | "restore" => {
            let entry = &order["entry"];
            let mut held = json!({
                "store": order["store"], "group": entry["id"], "proxy": entry["proxy"],
                "designated_qpn": entry["designated_qpn"], "entries": { "committed": order["name"] },
            });
            if order["recovery_snapshot"].is_string() {
                held["recovery_snapshots"] = json!([order["recovery_snapshot"]]);
            }
            script.held = Some(held);
        }
        "remove" => script.held = None,
        _ => {}
    }
}

/// The recorded report of a node with this key.
fn report_with(key: &str) -> Value {
    let has = |exchange: &Value| {
        !exchange["request"][key].as_array().is_some_and(Vec::is_empty) && !exchange["request"][key].is_null()
    };
    recorded().into_iter().find(has).unwrap()["request"].clone()
}

fn node(client: &Client, name: &str) -> Node {
    client.get(&format!("/v1/nodes/{name}")).unwrap().value
}

/// The life of a group with scripted nodes: prepare, commit, status, restore, registration with state, eviction, remove.
fn life_of_a_group(version: Version, protocol: u32) {
    let folder = tempfile::tempdir().unwrap();
    let config = srdma_controller::Config { node_lease_ms: 5000, ..config() };
    let running = Running::with(config, &folder.path().join("store"));
    let client = running.client();
    let start = |name| Scripted::start(running.client(), name, version, None);
    let mut nodes: BTreeMap<&str, Scripted> = ["N1", "N4", "N6"].map(|name| (name, start(name))).into();
    let session = nodes["N1"].script.lock().unwrap().session.clone();
    assert_eq!(session["protocol"], protocol);
    assert_eq!(session["lease_ms"], if protocol == FIRST_PROTOCOL { 0 } else { 5000 });
    assert_eq!(node(&client, "N1").protocol, Some(protocol));

    let group = create(&client, 1).summary.id;
    [1, 2].into_iter().for_each(|number| join(&client, group, number));
    assert_eq!(commit(&client, group).summary.state, GroupState::Ready);
    assert_eq!(nodes["N1"].orders(), "prepare, commit");

    nodes["N1"].script.lock().unwrap().report = Some(report_with("status"));
    let status = until("the status", || node(&client, "N1").status);
    assert_eq!((status.ports[0].sent_octets, status.groups[0].highest_psn), (2000, Some(0xff_fff4)));

    nodes.remove("N4").unwrap().end();
    nodes.insert("N4", start("N4"));
    until("N4 is restored", || (nodes["N4"].orders() == "restore").then_some(()));
    let held = nodes.remove("N6").unwrap().end();
    nodes.insert("N6", Scripted::start(running.client(), "N6", version, held));
    until_ready(&client, group);
    assert_eq!(nodes["N6"].orders(), "", "it has what it should have");

    nodes["N1"].script.lock().unwrap().report = Some(report_with("eviction_requests"));
    let members = |group: &Group| group.members.iter().map(|member| member.address).collect::<Vec<_>>();
    until("an eviction", || (members(&show(&client, group)) == [receiver_address(1)]).then_some(()));
    until_ready(&client, group);
    assert_eq!(nodes["N1"].orders(), "prepare, commit, prepare, commit");

    client.delete::<Value>(&format!("/v1/groups/{group}")).unwrap();
    until("the group is removed", || client.get::<Group>(&format!("/v1/groups/{group}")).err());
    assert!(nodes.values().all(|node| node.orders().ends_with("remove")));
    nodes.into_values().for_each(|node| assert_eq!(node.end(), None));
}

/// D112: a node of the version before, which speaks as recorded and gets what it knows.
#[test]
fn a_node_of_protocol_1_has_groups() {
    life_of_a_group(Version::Recorded, FIRST_PROTOCOL);
}

/// D112: a node of the version after, with more keys in its messages and answers of unknown kinds.
#[test]
fn a_node_of_a_newer_version_has_groups() {
    life_of_a_group(Version::Newer, PROTOCOL);
}

/// D112: versions that differ by more are refused, with both ranges and the side to upgrade.
#[test]
fn nodes_of_distant_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    for (protocol, older) in [(0, "node"), (PROTOCOL + 2, "controller")] {
        let registration = Registration { protocol, ..registration(1) };
        let error = client.post::<Session>("/v1/nodes", &registration, None).unwrap_err();
        assert!(error.is(ProblemType::ProtocolNotSupported), "{error}");
        let (node, own) = (Protocols::up_to(protocol), Protocols::OWN);
        let expected = format!("node N1 speaks {node}, the controller {own}: upgrade the {older}");
        assert_eq!(error.problem().unwrap().detail, expected);
    }
    let nodes: srdma_api::NodePage = client.get("/v1/nodes").unwrap().value;
    assert!(nodes.nodes.iter().all(|node| node.loopback != loopback(1)));
}
