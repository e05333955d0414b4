//! What is logged of refused requests, and responses to repeated ones.

use crate::access::{client, guarded, refusal, token};
use crate::running::*;
use srdma_api::{Client, GroupPage};
use srdma_controller::{Config, OnDisk, Role, Store, Write};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, Once};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Lines of the controllers of all tests of this process.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("srdma_controller")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

/// D100: what the audit log does not have, since it was not done.
#[test]
fn refused_requests_are_logged_with_their_source() {
    static SET: Once = Once::new();
    SET.call_once(|| tracing::subscriber::set_global_default(Lines).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let running = Running::start(guarded(), Arc::new(store), None);
    for (path, wanted) in [("/v1/groups?after=77", "missing-token"), ("/v1/nodes/refused", "forbidden")] {
        let name = if wanted == "forbidden" { Some("a") } else { None };
        let client = name.map_or_else(|| running.client(), |name| client(&running, name));
        assert_eq!(refusal(client.get::<serde_json::Value>(path)), wanted);
    }
    let lines = LINES.lock().unwrap().clone();
    let has = |words: &[&str]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["problem=\"missing-token\"", "from=::1", "token=\"none\"", "method=\"GET\"", "path=\"/v1/groups\""]));
    assert!(has(&["problem=\"forbidden\"", "from=::1", "token=\"a\"", "path=\"/v1/nodes/refused\""]), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("secret of")));
    let audit = client(&running, "root").get::<srdma_api::AuditPage>("/v1/audit").unwrap().value;
    assert!(audit.entries.is_empty());
}

fn post(client: &Client, path: &str, number: u16, key: &str) -> Result<srdma_api::Group, srdma_api::ClientError> {
    client.post(path, &new_group(number), Some(key)).map(|reply| reply.value)
}

/// D102: a key is one of its token, whatever characters both have, and of one request.
#[test]
fn idempotency_keys_of_tokens_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let tokens = vec![token("x", Role::Admin, None), token("x/y", Role::Admin, None)];
    let running = Running::start(Config { token: tokens, ..config() }, Arc::new(store), None);
    let first = post(&client(&running, "x/y"), "/v1/groups", 1, "k").unwrap();
    let refused = post(&client(&running, "x"), "/v1/groups", 1, "y/k");
    assert_eq!(refusal(refused), "address-in-use", "another token's response");
    assert_eq!(post(&client(&running, "x/y"), "/v1/groups", 1, "k").unwrap(), first);
    let elsewhere = post(&client(&running, "x/y"), "/v1/groups?tenant=default", 1, "k");
    assert_eq!(refusal(elsewhere), "idempotency-key-reused", "the tenant is a part of the request");
}

/// D102: rows of earlier programs are replaced, unless they may be of two tokens.
#[test]
fn stored_responses_of_earlier_programs_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    drop(Running::on_disk(&file));
    let row = |key: &str| Write::Put {
        key: key.to_owned(),
        value: br#"{"request": "00", "status": 201, "body": "{}", "unix_s": 4000000000}"#.to_vec(),
    };
    let store = opened(&file);
    store.commit(&[&row("answer/local/k"), &row("answer/x/y/k")]).unwrap();
    drop(store);
    let running = Running::on_disk(&file);
    let page: GroupPage = running.client().get("/v1/groups").unwrap().value;
    assert_eq!(page.total, 0);
    assert_eq!(refusal(post(&running.client(), "/v1/groups", 1, "k")), "idempotency-key-reused");
    drop(running);
    let store = opened(&file);
    assert!(store.rows("answer/", None, 9).unwrap().is_empty());
    let kept: Vec<String> = store.rows("response/", None, 9).unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(kept, ["response/5/local/k"]);
}
