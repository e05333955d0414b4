//! The thread against scripted controllers of other versions (D112): one that speaks as in the recorded messages, and a
//! newer one.

use super::*;
use serde_json::{Value, json};
use srdma_agent::{Agent, AllowedSids, Plan};
use srdma_api::{NodeStatus, PROTOCOL};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq)]
enum Version {
    Recorded,
    /// Its messages have more keys, and orders of a kind that the node does not know.
    Newer,
}

/// A controller that answers a node as recorded.
struct Scripted {
    version: Version,
    /// The exchanges of the node that follow.
    script: Vec<Value>,
    /// The refusals of a controller of protocol 1.
    invalid: Value,
    unknown_session: Value,
    /// Registrations that it did not understand.
    refused: usize,
}

/// What the test waits for: the end of the script, or the first request that is not as recorded.
type Outcome = Arc<Mutex<Option<Result<usize, String>>>>;

fn recorded(node: &str) -> (Vec<Value>, Value, Value) {
    let text = include_str!("../../../../../../testdata/protocol/1.json");
    let mut all: Vec<Value> = serde_json::from_str(text).unwrap();
    let [invalid, unknown] = all.split_off(all.len() - 2).try_into().unwrap();
    all.retain(|exchange| exchange["node"] == node);
    (all, invalid["response"].clone(), unknown["response"].clone())
}

impl Scripted {
    /// Starts it in a thread of its own; returns its URL.
    fn start(node: &str, version: Version) -> (String, Outcome) {
        let (script, invalid, unknown_session) = recorded(node);
        let mut scripted = Scripted { version, script, invalid, unknown_session, refused: 0 };
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let outcome = Outcome::default();
        let shared = Arc::clone(&outcome);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Some((path, request)) = stream.as_ref().ok().and_then(read_request) else { continue };
                let (status, response) = scripted.respond(&path, &request).unwrap_or_else(|wrong| {
                    shared.lock().unwrap().get_or_insert(Err(wrong));
                    (500, Value::Null)
                });
                if scripted.script.is_empty() {
                    shared.lock().unwrap().get_or_insert(Ok(scripted.refused));
                }
                respond(&mut stream.unwrap(), status, &response);
            }
        });
        (url, outcome)
    }

    fn respond(&mut self, path: &str, request: &Value) -> Result<(u16, Value), String> {
        let Some(next) = self.script.first().cloned() else { return Ok((200, json!({ "orders": [] }))) };
        let (is_registration, expected) = (path == "/v1/nodes", &next["request"]);
        let is_in_session = next["path"].as_str().expect("a path") != "/v1/nodes";
        if is_registration && is_in_session {
            return Err(format!("registers within its session: {request}"));
        }
        if self.version == Version::Recorded && !has_keys_of(request, path) {
            self.refused += 1;
            return Ok((400, self.invalid.clone()));
        }
        if !is_registration && !is_in_session {
            return Ok((409, self.unknown_session.clone()));
        }
        let is_idle = |sync: &Value| {
            let is_empty = |key: &str| sync[key].as_array().is_none_or(Vec::is_empty);
            is_empty("answers") && is_empty("eviction_requests") && sync["status"].is_null()
        };
        if !is_registration && is_idle(request) && !is_idle(expected) {
            return Ok((200, json!({ "orders": [] })));
        }
        if self.version == Version::Newer && request["status"].is_object() {
            let is_named = request["status"]["unreachable"].as_array().is_some_and(|hints| hints.len() == 1);
            is_named.then_some(()).ok_or_else(|| format!("the neighbour without BFD is not reported: {request}"))?;
        }
        let differs = |key: &str| self.comparable(&request[key]) != self.comparable(&expected[key]);
        let compared: &[&str] = match is_registration {
            true => &["name", "loopback", "end_mt", "replication", "links", "hosts", "groups"],
            false => &["session", "answers", "eviction_requests", "status"],
        };
        if let Some(key) = compared.iter().find(|key| differs(key)) {
            return Err(format!("{key}: {} instead of {}", request[key], expected[key]));
        }
        self.script.remove(0);
        Ok((200, self.response(&next["response"])))
    }

    /// What of a value can be compared with the recorded one.
    fn comparable(&self, value: &Value) -> Value {
        match (self.version, value) {
            // The refusals of the orders that the node does not know.
            (Version::Newer, Value::Array(items)) => {
                let is_known = |item: &&Value| {
                    !item["reason"].as_str().is_some_and(|reason| reason.contains("order \"of-a-newer-version\""))
                };
                items.iter().filter(is_known).cloned().collect()
            }
            (Version::Newer, Value::Object(status)) => {
                status.iter().filter(|(key, _)| *key != "unreachable").map(|(k, v)| (k.clone(), v.clone())).collect()
            }
            (Version::Recorded | Version::Newer, value) => value.clone(),
        }
    }

    fn response(&self, recorded: &Value) -> Value {
        if self.version == Version::Recorded {
            return recorded.clone();
        }
        let mut response = with_more_keys(recorded);
        if response["session"].is_u64() {
            response["protocol"] = json!(PROTOCOL);
        }
        if let Some(orders) = response["orders"].as_array_mut().filter(|orders| !orders.is_empty()) {
            let name = orders[0]["name"].clone();
            orders.insert(0, json!({ "order": "of-a-newer-version", "group": 1, "name": name, "more": 7 }));
            orders.insert(0, json!("of a form that no version has"));
        }
        response
    }
}

/// Whether a request has only keys that controllers of protocol 1 accept: those of the recorded requests to this path.
fn has_keys_of(request: &Value, path: &str) -> bool {
    let mut known = Vec::new();
    for exchange in recorded("N1").0.iter().chain(&recorded("N6").0) {
        if (exchange["path"] == "/v1/nodes") == (path == "/v1/nodes") {
            keys(&exchange["request"], "", &mut known);
        }
    }
    let mut sent = Vec::new();
    keys(request, "", &mut sent);
    sent.iter().all(|key| known.contains(key))
}

/// The paths of all keys of a message.
fn keys(message: &Value, at: &str, found: &mut Vec<String>) {
    match message {
        Value::Object(members) => {
            for (key, value) in members {
                let at = format!("{at}/{key}");
                keys(value, &at, found);
                found.push(at);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, at, found)),
        _ => {}
    }
}

/// The message with more keys in each object but group entries and names.
fn with_more_keys(message: &Value) -> Value {
    match message {
        Value::Object(members) => {
            let is_exact = |key: &str| matches!(key, "entry" | "name");
            let more = |(key, value): (&String, &Value)| {
                (key.clone(), if is_exact(key) { value.clone() } else { with_more_keys(value) })
            };
            members.iter().map(more).chain([("of_a_newer_version".to_owned(), json!({}))]).collect()
        }
        Value::Array(items) => items.iter().map(with_more_keys).collect(),
        other => other.clone(),
    }
}

fn read_request(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines.first()?.split(' ').nth(1)?.to_owned();
    let length = lines.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).ok()?))
}

fn respond(stream: &mut TcpStream, status: u16, response: &Value) {
    let body = response.to_string();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    // The node may have gone.
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

/// The control task in the test: the node as it was when the messages were recorded.
struct Node {
    agent: Agent,
    registration: Registration,
    status: Option<NodeStatus>,
    registrations: u32,
    /// Reports since the commit of epoch 2.
    reports: Option<u32>,
}

impl Node {
    fn new(name: &str) -> Self {
        let script = recorded(name).0;
        let registration: Registration = serde_json::from_value(script[0]["request"].clone()).unwrap();
        let has_status = |exchange: &&Value| exchange["request"]["status"].is_object();
        let status = script.iter().find(has_status).map(|exchange| exchange["request"]["status"].clone());
        let status = status.map(|status| NodeStatus {
            unreachable: vec![registration.links[0].to],
            ..serde_json::from_value(status).unwrap()
        });
        let agent = Agent::new(allowed(&registration));
        Node { agent, registration, status, registrations: 0, reports: None }
    }

    /// Handles events until the controller has an outcome; returns the reported failures.
    async fn run(mut self, mut client: ControllerClient, outcome: Outcome) -> (Result<usize, String>, Vec<String>) {
        let mut failures = Vec::new();
        loop {
            if let Some(outcome) = outcome.lock().unwrap().take() {
                return (outcome, failures);
            }
            match client.event().await.expect("the thread lives") {
                ControllerEvent::Register(reply) => {
                    if self.registration.name == "N4" && self.registrations == 1 {
                        self.agent = Agent::new(allowed(&self.registration));
                    }
                    reply.send(Box::new(self.agent.registration(self.registration.clone())));
                }
                ControllerEvent::Registered => {
                    self.registrations += 1;
                    self.agent.registered();
                }
                ControllerEvent::Report(reply) => {
                    self.observe();
                    reply.send(self.agent.report(0));
                }
                ControllerEvent::Orders(orders, reply) => {
                    reply.send(orders.into_iter().filter_map(|order| self.execute(order)).collect());
                }
                ControllerEvent::Lease(_) => {}
                ControllerEvent::Failed(reason) => failures.push(reason),
            }
        }
    }

    fn execute(&mut self, order: NodeOrder) -> Option<NodeAnswer> {
        if let (NodeOrder::Prepare { name, entry, .. }, "N1") = (&order, self.registration.name.as_str())
            && name.epoch == 1
        {
            return Some(NodeAnswer::Refused { group: entry.id.0, name: *name, reason: "no room".to_owned() });
        }
        if matches!(&order, NodeOrder::Commit { name, .. } if name.epoch == 2) {
            self.reports = Some(0);
        }
        match self.agent.table.plan(order, |_| false) {
            Plan::Nothing => None,
            Plan::Answer(answer) => Some(answer),
            Plan::Apply(change) => {
                let (table, answer) = self.agent.table.apply(&change);
                self.agent.table = table;
                answer
            }
        }
    }

    /// After the answer to the commit, the node reports its status, and then requests an eviction.
    fn observe(&mut self) {
        let Some(reports) = self.reports.as_mut().filter(|_| self.status.is_some()) else { return };
        *reports += 1;
        match *reports {
            2 => self.agent.set_status(self.status.clone().unwrap()),
            3 => self.agent.evictions.set([(1, Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, 2), "stalled")]),
            _ => {}
        }
    }
}

fn allowed(registration: &Registration) -> AllowedSids {
    AllowedSids { end_mt: registration.end_mt, replication: registration.replication }
}

/// A node's whole conversation; returns the number of registrations that the controller did not understand.
fn conversation(name: &str, version: Version) -> usize {
    let (url, outcome) = Scripted::start(name, version);
    let node = Node::new(name);
    let Registration { end_mt, replication, hosts, .. } = node.registration.clone();
    let (token_file, ca_file, links, name) = (None, None, Vec::new(), name.to_owned());
    let settings = ControllerSettings { url, token_file, ca_file, name, end_mt, replication, links, hosts };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (outcome, failures) = runtime.block_on(async {
        let client = ControllerClient::start(settings).unwrap();
        let run = node.run(client, outcome);
        tokio::time::timeout(Duration::from_secs(60), run).await.expect("the conversation ends")
    });
    let refused = outcome.unwrap_or_else(|wrong| panic!("{wrong}; failures: {failures:?}"));
    assert_eq!(failures, [""; 0], "an older protocol is no failure");
    refused
}

/// D112: a controller of protocol 1 gets the recorded requests, once it has refused the number of the protocol.
#[test]
fn a_controller_of_protocol_1_is_spoken_to_as_recorded() {
    for (name, registrations) in [("N1", 1), ("N4", 2), ("N6", 2)] {
        assert_eq!(conversation(name, Version::Recorded), registrations, "{name}");
    }
}

/// D112: a newer controller is understood; orders of unknown kinds are refused, and the others executed. It gets the
/// hints of BFD (D111), which one of protocol 1 would refuse.
#[test]
fn a_newer_controller_is_understood() {
    for name in ["N1", "N4", "N6"] {
        assert_eq!(conversation(name, Version::Newer), 0, "{name}");
    }
}
