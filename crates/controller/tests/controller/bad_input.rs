//! Invalid requests are rejected with the name of the problem, and change nothing.

use crate::fleet::{figure_1, registration};
use crate::life::ready;
use crate::running::*;
use srdma_api::ProblemType;
use srdma_api::{
    Client, ClientError, EvictionRequest, MemoryRegion, NewGroup, NewReceiver, NodeStatus, Receiver, Registration,
    SourceRegion, Sync,
};

fn name<T: std::fmt::Debug>(refused: Result<T, ClientError>) -> String {
    refused.unwrap_err().problem().expect("a problem").name().to_owned()
}

/// Makes a valid request invalid.
type Invalidate = fn(&mut NewGroup);

#[test]
fn invalid_groups_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let _agents = figure_1(&running);
    let client = running.client();
    create(&client, 1);
    until("all nodes have registered", || {
        let nodes: srdma_api::NodePage = client.get("/v1/nodes").unwrap().value;
        (nodes.nodes.len() == 6).then_some(())
    });
    let wrong: [(&str, Invalidate); 16] = [
        ("invalid-qpn", |group| group.designated_qpn = 1 << 24),
        ("invalid-qpn", |group| group.source.qpn = 1),
        ("invalid-psn", |group| group.initial_psn = 1 << 24),
        ("invalid-path-mtu", |group| group.path_mtu = 1500),
        ("invalid-address", |group| group.proxy = Some("ff02::1".parse().unwrap())),
        ("invalid-address", |group| group.source.address = "::1".parse().unwrap()),
        ("invalid-address", |group| group.proxy = None),
        ("invalid-address", |group| group.source.address = "::ffff:127.0.0.1".parse().unwrap()),
        ("mixed-families", |group| group.source.address = "::ffff:10.1.0.1".parse().unwrap()),
        ("address-in-use", |group| group.proxy = Some("2001:db8:cc::1".parse().unwrap())),
        ("address-in-use", |group| group.proxy = Some(group.source.address)),
        ("address-in-use", |group| group.proxy = Some("2001:db8:ff:4:f::9".parse().unwrap())),
        ("queue-pair-in-use", |group| group.source.qpn = 0x101),
        ("invalid-regions", |group| group.more_regions.extend(group.region)),
        ("invalid-regions", |group| {
            let region = |rkey| SourceRegion { base: 0, length: 1, rkey };
            group.more_regions = (100..116).map(region).collect();
        }),
        ("invalid-regions", |group| {
            group.more_regions.extend(group.region.take());
        }),
    ];
    for (kind, invalidate) in wrong {
        let mut group = new_group(2);
        invalidate(&mut group);
        assert_eq!(name(client.post::<srdma_api::Group>("/v1/groups", &group, None)), kind, "{group:?}");
    }
    let page: srdma_api::GroupPage = client.get("/v1/groups").unwrap().value;
    assert_eq!(page.total, 1);
    assert_eq!(name(client.post::<srdma_api::Group>("/v1/groups?tenant=x", &new_group(2), None)), "other-tenant");
    let empty = client.post::<srdma_api::Group>("/v1/groups/1/commit", &srdma_api::CommitRequest::default(), None);
    assert_eq!(name(empty), "group-empty");
}

#[test]
fn invalid_joins_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let _agents = figure_1(&running);
    let (group, client) = ready(&running);
    let other = create(&client, 2).summary.id;
    let put = |group: u32, address: &str, receiver: NewReceiver| {
        client.put::<Receiver>(&format!("/v1/groups/{group}/receivers/{address}"), &receiver)
    };
    let good = || new_receiver(6);
    let elsewhere = Some(MemoryRegion { virtual_address: 1, rkey: 1 });
    for (kind, group, address, receiver) in [
        ("unknown-group", 99, "2001:db8:bb::6", good()),
        ("already-joined", group, "2001:db8:bb::1", NewReceiver { qpn: 0x2000, ..good() }),
        ("already-joined", group, "2001:db8:bb::1", NewReceiver { region: elsewhere, ..new_receiver(1) }),
        ("already-joined", group, "2001:db8:bb::1", NewReceiver { psn_offset: 1, ..new_receiver(1) }),
        ("path-mtu-mismatch", group, "2001:db8:bb::6", NewReceiver { path_mtu: 1024, ..good() }),
        ("invalid-qpn", group, "2001:db8:bb::6", NewReceiver { qpn: 1 << 24, ..good() }),
        ("invalid-psn", group, "2001:db8:bb::6", NewReceiver { psn_offset: 1 << 24, ..good() }),
        ("missing-region", group, "2001:db8:bb::6", NewReceiver { region: None, ..good() }),
        (
            "invalid-regions",
            group,
            "2001:db8:bb::6",
            NewReceiver { more_regions: elsewhere.into_iter().collect(), ..good() },
        ),
        ("invalid-address", group, "ff02::1", good()),
        ("invalid-address", group, "nowhere", good()),
        ("mixed-families", group, "10.1.0.6", good()),
        ("address-in-use", group, "2001:db8:cc::2", good()),
        ("address-in-use", group, "2001:db8:aa::1", good()),
        ("address-in-use", group, "2001:db8:ff:4::1", good()),
        ("queue-pair-in-use", other, "2001:db8:bb::1", new_receiver(1)),
        ("no-path", group, "2001:db8:dd::1", good()),
    ] {
        assert_eq!(name(put(group, address, receiver.clone())), kind, "{address} {receiver:?}");
    }
    // The same join is accepted again.
    put(group, "2001:db8:bb::1", new_receiver(1)).unwrap();
    assert_eq!(
        name(client.delete::<Receiver>(&format!("/v1/groups/{group}/receivers/2001:db8:bb::6"))),
        "unknown-receiver"
    );
    assert_eq!(show(&client, group).summary.receivers, 5);
}

/// The same key receives the same response and creates nothing more; with another request it is rejected.
#[test]
fn an_idempotency_key_creates_one_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let running = Running::on_disk(&file);
    let send =
        |client: &Client, number: u16| client.post::<srdma_api::Group>("/v1/groups", &new_group(number), Some("k1"));
    let first = send(&running.client(), 1).unwrap().value;
    assert_eq!(send(&running.client(), 1).unwrap().value, first);
    assert_eq!(name(send(&running.client(), 2)), "idempotency-key-reused");
    drop(running);
    let running = Running::on_disk(&file);
    assert_eq!(send(&running.client(), 1).unwrap().value, first, "also after a restart");
    let page: srdma_api::GroupPage = running.client().get("/v1/groups").unwrap().value;
    assert_eq!(page.total, 1);
}

fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn a_change_of_another_version_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    let group = create(&client, 1).summary;
    let path = format!("/v1/groups/{}/receivers/{}", group.id, receiver_address(1));
    let body = serde_json::to_string(&new_receiver(1)).unwrap();
    let refused = running.raw(&request("PUT", &path, "if-match: \"77\"\r\n", &body));
    assert!(refused.starts_with("HTTP/1.1 412") && refused.contains("/problems/version-mismatch"), "{refused}");
    let header = format!("if-match: \"{}\"\r\n", group.version);
    let answer = running.raw(&request("PUT", &path, &header, &body));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("etag: \"2\""), "{answer}");
}

/// Names stand in paths, logs and terminals.
#[test]
fn names_that_terminals_interpret_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    let register = |name: &str| {
        let registration = Registration { name: name.to_owned(), ..registration(1) };
        client.post::<srdma_api::Session>("/v1/nodes", &registration, None)
    };
    for wrong in ["\x1b[2J", "N\n1", "N 1", "N/1", "N\u{202e}1", "", &"x".repeat(65)] {
        assert_eq!(name(register(wrong)), "invalid-request", "{wrong:?}");
    }
    register("leaf-1.a_b").unwrap();
    for wrong in ["a\u{202e}b", "a\x07", &"x".repeat(129)] {
        let group = NewGroup { name: Some(wrong.to_owned()), ..new_group(1) };
        assert_eq!(name(client.post::<srdma_api::Group>("/v1/groups", &group, None)), "invalid-request", "{wrong:?}");
    }
    let group = NewGroup { name: Some("Größe 1".to_owned()), ..new_group(1) };
    client.post::<srdma_api::Group>("/v1/groups", &group, None).unwrap();
}

/// D101: what a node reports is kept, shown and printed.
#[test]
fn reports_of_nodes_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    let session = client.register(&registration(1)).unwrap().session;
    let receiver = receiver_address(1);
    let request = EvictionRequest { group: 1, receiver, cause: "stalled".to_owned() };
    let eviction_requests = vec![request; srdma_api::MAX_EVICTION_REQUESTS + 1];
    let many = Sync { session, eviction_requests, ..Sync::default() };
    assert_eq!(name(client.sync("N1", &many)), "invalid-request");
    let programs = vec![format!("\x1b[2J{}", "x".repeat(1 << 20))];
    let status = Some(NodeStatus { programs, ..NodeStatus::default() });
    client.sync("N1", &Sync { session, status, ..Sync::default() }).unwrap();
    let shown = client.node("N1").unwrap().status.unwrap().programs.remove(0);
    assert!(shown.starts_with("\u{fffd}[2Jx") && shown.len() == 256, "{shown}");
}

#[test]
fn malformed_requests_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    for (method, path, headers, body, kind) in [
        ("GET", "/v1/nowhere", "", "", ProblemType::UnknownPath),
        ("PATCH", "/v1/groups", "", "", ProblemType::MethodNotAllowed),
        ("POST", "/v1/groups", "", "{", ProblemType::InvalidRequest),
        ("POST", "/v1/groups", "", "{\"unknown\": 1}", ProblemType::InvalidRequest),
        ("GET", "/v1/groups?limit=many", "", "", ProblemType::InvalidRequest),
        ("GET", "/v1/groups/seven", "", "", ProblemType::UnknownGroup),
        ("DELETE", "/v1/groups/1", "if-match: x\r\n", "", ProblemType::InvalidRequest),
        ("POST", "/v1/groups", "idempotency-key: \r\n", "{}", ProblemType::InvalidRequest),
    ] {
        let answer = running.raw(&request(method, path, headers, body));
        let status = format!("HTTP/1.1 {}", kind.status());
        assert!(answer.starts_with(&status) && answer.contains(kind.name()), "{method} {path}: {answer}");
        assert!(answer.contains("content-type: application/problem+json"), "{answer}");
    }
}

/// A body of 100 MB is rejected before it is read, with a length or without.
#[test]
fn a_request_of_100_mb_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    const HEAD: &str = "POST /v1/groups HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let sized = running.raw(format!("{HEAD}content-length: 100000000\r\n\r\n{{").as_bytes());
    assert!(sized.starts_with("HTTP/1.1 413") && sized.contains("request-too-large"), "{sized}");
    let mut chunked = format!("{HEAD}transfer-encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..6 {
        chunked.extend_from_slice(b"100000\r\n");
        chunked.resize(chunked.len() + 0x10_0000, b' ');
        chunked.extend_from_slice(b"\r\n");
    }
    let chunked = running.raw(&chunked);
    assert!(chunked.starts_with("HTTP/1.1 413"), "{}", &chunked[..chunked.len().min(300)]);
}

/// The pages contain each group once, in order.
#[test]
fn lists_are_paged() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let client = running.client();
    (1..=25).for_each(|number| drop(create(&client, number)));
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let page: srdma_api::GroupPage = client.get(&format!("/v1/groups?limit=10{after}")).unwrap().value;
        assert_eq!(page.total, 25);
        found.extend(page.groups.iter().map(|group| group.id));
        let Some(next) = page.next else { break };
        after = format!("&after={next}");
    }
    assert_eq!(found, (1..=25).collect::<Vec<_>>());
}

/// The documentation names every kind of problem, and the API's description every path.
#[test]
fn problems_and_paths_are_described() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/controller.md")).unwrap();
    for kind in ProblemType::ALL {
        let row = format!("| `{}` | {} | {} |", kind.name(), kind.status(), kind.title());
        assert!(text.contains(&row), "docs/controller.md lacks the row {row}");
    }
    let description: serde_json::Value = serde_json::from_str(&srdma_controller::description()).unwrap();
    for path in ["/v1/groups/{id}/receivers/{address}", "/v1/nodes/{name}/sync", "/v1/events"] {
        assert!(description["paths"][path].is_object(), "{path}");
    }
}
