//! Requests that a browser sends for pages of other origins (D100).

use crate::access::guarded;
use crate::running::*;
use srdma_controller::{Config, OnDisk};
use std::sync::Arc;

fn started(config: Config) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    (folder, Running::start(config, Arc::new(store), None))
}

/// Status and body of a response.
fn send(running: &Running, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
    let answer = running.raw(format!("{request}\r\n{body}").as_bytes());
    (answer.split(' ').nth(1).expect("a status").parse().unwrap(), answer)
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// D100: a page of any name that resolves to the loopback reads and changes nothing.
#[test]
fn other_hosts_are_refused_without_tokens() {
    let url = Some("http://controller.example:8470".to_owned());
    let (_folder, running) = started(Config { url, ..config() });
    let group = create(&running.client(), 1).summary.id;
    let group = format!("/v1/groups/{group}");
    for (method, path) in [("GET", "/v1/backup"), ("GET", "/"), ("DELETE", group.as_str()), ("GET", "/nowhere")] {
        for host in ["evil.example", "evil.example:8470", "192.0.2.1", "localhost.evil.example"] {
            let (status, answer) = send(&running, method, path, &[("host", host)], "");
            assert!(status == 421 && answer.contains("foreign-host"), "{method} {path} {host}: {answer}");
        }
    }
    let own = format!("[::1]:{}", running.address.port());
    for host in ["localhost", "127.0.0.1:8470", own.as_str(), "controller.example"] {
        assert_eq!(send(&running, "GET", &group, &[("host", host)], "").0, 200, "{host}");
    }
}

/// D100: requests that a browser sends without asking for permission.
#[test]
fn other_origins_are_refused_without_tokens() {
    let (_folder, running) = started(config());
    let own = format!("[::1]:{}", running.address.port());
    let host = ("host", own.as_str());
    let body = serde_json::to_string(&new_group(1)).unwrap();
    let origin = format!("http://{own}");
    let post = |headers: &[(&str, &str)]| send(&running, "POST", "/v1/groups", &[&[host], headers].concat(), &body);
    for (wanted, headers) in [
        ("foreign-origin", [JSON, ("origin", "http://evil.example")]),
        ("foreign-origin", [JSON, ("origin", "null")]),
        ("foreign-origin", [JSON, ("origin", "http://[::1]:3000")]),
        ("foreign-origin", [JSON, ("sec-fetch-site", "cross-site")]),
        ("foreign-origin", [JSON, ("sec-fetch-site", "same-site")]),
        ("unsupported-media-type", [("content-type", "text/plain"), ("origin", origin.as_str())]),
    ] {
        let (status, answer) = post(&headers);
        assert!((status == 403 || status == 415) && answer.contains(wanted), "{headers:?}: {answer}");
    }
    assert_eq!(running.client().get::<srdma_api::GroupPage>("/v1/groups").unwrap().value.total, 0);
    // As the page sends it.
    let page = [JSON, ("origin", origin.as_str()), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")];
    assert_eq!(post(&page).0, 201);
    let link = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(send(&running, "GET", "/", &link, "").0, 200);
}

/// With tokens no request is trusted for the machine that it is from; bodies are JSON all the same.
#[test]
fn bodies_are_json_with_tokens_too() {
    let (_folder, running) = started(guarded());
    let body = serde_json::to_string(&new_group(1)).unwrap();
    let post = |kind: &str| {
        let headers = [("host", "controller.example"), ("authorization", "Bearer secret of a"), ("content-type", kind)];
        send(&running, "POST", "/v1/groups", &headers, &body)
    };
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let (status, answer) = post(kind);
        assert!(status == 415 && answer.contains("unsupported-media-type"), "{kind}: {answer}");
    }
    assert_eq!(post("application/json; charset=utf-8").0, 201);
}
