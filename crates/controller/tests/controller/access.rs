//! Requests without permission are rejected.

use crate::running::*;
use sha2::{Digest, Sha256};
use srdma_api::{Client, ClientError, GroupPage};
use srdma_controller::{Config, OnDisk, Role, Server, StatedNode, Store, Tenant, Tls, Token};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn token(name: &str, role: Role, tenant: Option<&str>) -> Token {
    let sha256 = hex::encode(Sha256::digest(format!("secret of {name}")));
    Token { name: name.to_owned(), sha256, role, tenant: tenant.map(str::to_owned), node: None }
}

fn tenant(name: &str, prefixes: &[&str], groups: usize) -> Tenant {
    Tenant {
        name: name.to_owned(),
        prefixes: prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect(),
        proxies: format!("2001:db8:cc:{name}::/112").parse().ok(),
        groups,
        copies: 2,
        has_all_nics: false,
        ..Tenant::default()
    }
}

pub(crate) fn guarded() -> Config {
    Config {
        token: vec![
            token("root", Role::Admin, None),
            token("a", Role::Tenant, Some("a")),
            token("b", Role::Tenant, Some("b")),
            Token { node: Some("N1".to_owned()), ..token("node", Role::Node, None) },
            token("reader", Role::Read, None),
        ],
        tenant: vec![
            tenant("a", &["2001:db8:aa::/48", "2001:db8:bb::/48", "2001:db8:cc::/48"], 2),
            tenant("b", &["2001:db8:b::/48"], 9),
        ],
        ..config()
    }
}

pub(crate) fn client(running: &Running, name: &str) -> Client {
    Client::new(&format!("http://{}", running.address), Some(format!("secret of {name}")), None).unwrap()
}

pub(crate) fn refusal<T: std::fmt::Debug>(refused: Result<T, ClientError>) -> String {
    refused.unwrap_err().problem().expect("a problem").name().to_owned()
}

#[test]
fn tokens_permit_only_their_own_resources() {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let running = Running::start(guarded(), Arc::new(store), None);
    assert_eq!(refusal(running.client().get::<GroupPage>("/v1/groups")), "missing-token");
    assert_eq!(refusal(client(&running, "unknown").get::<GroupPage>("/v1/groups")), "invalid-token");
    let [a, b, node, reader, root] = ["a", "b", "node", "reader", "root"].map(|name| client(&running, name));
    let group = create(&a, 1).summary;
    assert_eq!(group.tenant, "a");
    let path = format!("/v1/groups/{}", group.id);
    // As a group that does not exist.
    assert_eq!(refusal(b.get::<srdma_api::Group>(&path)), "unknown-group");
    assert_eq!(refusal(b.delete::<srdma_api::Group>(&path)), "unknown-group");
    let texts = [group.id, group.id + 1].map(|id| {
        let refused = b.get::<srdma_api::Group>(&format!("/v1/groups/{id}")).unwrap_err();
        refused.problem().expect("a problem").detail.replace(&id.to_string(), "ID")
    });
    assert_eq!(texts[0], texts[1]);
    assert_eq!(refusal(node.get::<srdma_api::Group>(&path)), "forbidden");
    assert_eq!(refusal(node.get::<srdma_api::Group>("/v1/groups/99")), "forbidden");
    let receiver = format!("{path}/receivers/{}", receiver_address(1));
    assert_eq!(refusal(b.put::<srdma_api::Receiver>(&receiver, &new_receiver(1))), "unknown-group");
    assert_eq!(refusal(reader.delete::<srdma_api::Group>(&path)), "forbidden");
    assert_eq!(refusal(node.get::<GroupPage>("/v1/groups")), "forbidden");
    assert_eq!(refusal(a.get::<srdma_api::Topology>("/v1/topology")), "forbidden");
    assert_eq!(refusal(a.post::<srdma_api::Session>("/v1/nodes", &crate::fleet::registration(1), None)), "forbidden");
    assert_eq!(refusal(a.post::<srdma_api::Group>("/v1/groups?tenant=b", &new_group(2), None)), "forbidden");
    assert_eq!(refusal(node.register(&crate::fleet::registration(2))), "forbidden");
    let registration = crate::fleet::registration(1);
    assert_eq!(refusal(node.register(&registration)), "node-unconfirmed");
    assert_eq!(refusal(node.confirm_node("N1", &registration.identity())), "forbidden");
    assert_eq!(root.nodes(None, None).unwrap().nodes[0].unconfirmed, Some(registration.identity()));
    root.confirm_node("N1", &registration.identity()).unwrap();
    node.register(&registration).unwrap();
    assert_eq!(refusal(node.rename_node("N1", "N2")), "forbidden");
    assert_eq!(refusal(node.remove_node("N1")), "forbidden");
    assert_eq!(
        refusal(node.put::<srdma_api::Node>("/v1/nodes/N1/drain", &srdma_api::DrainRequest { drained: true })),
        "forbidden"
    );
    let seen = |client: &Client| client.get::<GroupPage>("/v1/groups").unwrap().value.total;
    assert_eq!((seen(&a), seen(&b), seen(&reader), seen(&root)), (1, 0, 1, 1));
}

/// Replication must not become an amplifier.
#[test]
fn a_tenant_is_limited_by_its_quotas() {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let running = Running::start(guarded(), Arc::new(store), None);
    let (a, b) = (client(&running, "a"), client(&running, "b"));
    let group = create(&a, 1).summary.id;
    (1..=2).for_each(|number| join(&a, group, number));
    let third = format!("/v1/groups/{group}/receivers/{}", receiver_address(3));
    assert_eq!(refusal(a.put::<srdma_api::Receiver>(&third, &new_receiver(3))), "receiver-quota-exceeded");
    let pooled = srdma_api::NewGroup { proxy: None, ..new_group(2) };
    let second: srdma_api::Group = a.post("/v1/groups", &pooled, None).unwrap().value;
    assert_eq!(second.summary.proxy.to_string(), "2001:db8:cc:a::1");
    assert_eq!(refusal(a.post::<srdma_api::Group>("/v1/groups", &new_group(3), None)), "group-quota-exceeded");
    assert_eq!(refusal(b.post::<srdma_api::Group>("/v1/groups", &new_group(3), None)), "address-not-permitted");
}

/// Clients that do not trust the certificate, and clients without TLS, receive no response.
#[test]
fn tls_requires_a_trusted_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    srdma_toml_error::write_private(&key, &made.signing_key.serialize_pem()).unwrap();
    let tls = Some(Tls { certificate: certificate.clone(), key });
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let running = Running::start(Config { tls, listen, ..guarded() }, Arc::new(store), None);
    let url = format!("https://localhost:{}", running.address.port());
    let trusting = |authority: Option<&Path>| Client::new(&url, Some("secret of root".to_owned()), authority).unwrap();
    assert_eq!(trusting(Some(&certificate)).get::<GroupPage>("/v1/groups").unwrap().value.total, 0);
    assert!(matches!(trusting(None).get::<GroupPage>("/v1/groups"), Err(ClientError::Unreachable { .. })));
    let plain = running.raw(b"GET /v1/groups HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(!plain.contains("HTTP"), "{plain}");
}

/// A key that other users can read is refused by name, and the store is its owner's alone (D108).
#[test]
fn secrets_are_their_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let set_mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set_mode(folder.path(), 0o755);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let [certificate, key, store] = ["certificate.pem", "key.pem", "store"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    set_mode(&key, 0o644);
    let opened: Arc<dyn Store> = Arc::new(OnDisk::open(&store).unwrap());
    assert_eq!(std::fs::metadata(&store).unwrap().permissions().mode() & 0o777, 0o600);
    let config = Config { tls: Some(Tls { certificate, key: key.clone() }), ..guarded() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = || {
        let server = Server::start(config.clone(), Arc::clone(&opened), None, || std::process::exit(1));
        runtime.block_on(server).map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = start().unwrap_err();
    assert!(refused.starts_with(&format!("{}: holds a secret", key.display())), "{refused}");
    set_mode(&key, 0o600);
    assert_eq!(start(), Ok(()));
}

/// Without tokens and TLS connections from other hosts are rejected.
#[test]
fn a_controller_without_authentication_listens_on_loopback_only() {
    let wide = vec!["[::]:8470".parse().unwrap()];
    let open = Config { listen: wide.clone(), ..Config::default() };
    assert!(open.check().unwrap_err().contains("without a [[token]]"));
    let clear = Config { listen: wide, ..guarded() };
    assert!(clear.check().unwrap_err().contains("without [tls]"));
}

/// D125: what a node is, as controller.toml states it.
#[test]
fn stated_nodes_are_checked() {
    let node = |name: &str, more: &str| {
        let text = format!("name = '{name}'\nloopback = '2001:db8:ff:{name}::1'\n{more}\n");
        toml::from_str::<StatedNode>(&text).unwrap()
    };
    let check = |node: Vec<StatedNode>| Config { node, ..guarded() }.check();
    check(vec![node("1", "hosts = ['2001:db8:bb:1::/64']"), node("2", "hosts = ['2001:db8:bb:2::/64']")]).unwrap();
    let overlap = check(vec![node("1", "replication = '2001:db8:ff:2::/64'"), node("2", "")]).unwrap_err();
    assert!(overlap.contains("overlaps loopback 2001:db8:ff:2::1/128 of node 2"), "{overlap}");
    let tenant = check(vec![node("1", "end_mt = '2001:db8:bb::e'")]).unwrap_err();
    assert!(tenant.contains("prefix 2001:db8:bb::/48 of tenant a"), "{tenant}");
    assert!(check(vec![node("1", ""), node("1", "")]).unwrap_err().contains("same name"));
    let many = Config { node: vec![node("1", ""), node("2", "")], nodes: 1, ..guarded() };
    assert!(many.check().unwrap_err().contains("nodes = 1"));
    let unbound = Config { token: vec![token("fabric", Role::Node, None)], ..config() };
    assert!(unbound.check().unwrap_err().contains("needs a `node`"));
}

/// Of two tokens with one name or digest it is not clear which one a request has.
#[test]
fn tokens_have_names_and_digests_of_their_own() {
    let one = || token("one", Role::Admin, None);
    let other = |name: &str, sha256: &str| Token { name: name.to_owned(), sha256: sha256.to_owned(), ..one() };
    let check = |second: Token| Config { token: vec![one(), second], ..config() }.check();
    assert!(check(other("one", &"0".repeat(64))).unwrap_err().contains("name one"));
    assert!(check(other("two", &one().sha256)).unwrap_err().contains("same sha256"));
    assert!(check(other("\x1b[2J", &"0".repeat(64))).unwrap_err().contains("printed"));
    check(other("two/a", &"0".repeat(64))).unwrap();
}

/// A token is not sent to other machines without encryption.
#[test]
fn tokens_are_sent_encrypted_or_to_this_machine() {
    let client = |url: &str, token: Option<&str>| Client::new(url, token.map(str::to_owned), None);
    for url in ["http://192.0.2.1:8470", "http://[2001:db8::1]:8470", "http://127.0.0.1.example", "http://a@b"] {
        let mixed = format!("https://controller.example,{url}");
        for url in [url, &mixed] {
            let error = client(url, Some("secret")).unwrap_err();
            assert!(matches!(error, ClientError::Unencrypted { .. }), "{url}: {error}");
            client(url, None).unwrap();
        }
    }
    for url in ["http://localhost:8470", "http://127.0.0.1:1", "http://[::1]:8470", "https://192.0.2.1:8470"] {
        client(url, Some("secret")).unwrap();
    }
}
