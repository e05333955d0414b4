//! Clients that do not read, do not send, or show no token (D101).

use crate::access::{client, guarded};
use crate::fleet::registration;
use crate::running::*;
use srdma_api::Registration;
use srdma_controller::{Config, OnDisk, StatedNode};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const REQUEST: &[u8] = b"GET /v1/groups HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Requests whose responses exceed every buffer of a socket.
fn pages() -> Vec<u8> {
    b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(64)
}

fn started(config: Config) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    (folder, Running::start(Config { listen, ..config }, Arc::new(store), None))
}

/// A node that needs no confirmation.
fn stated(number: u16) -> StatedNode {
    let Registration { name, loopback, end_mt, replication, hosts, .. } = registration(number);
    StatedNode { name, loopback, end_mt, replication, hosts }
}

/// Connects from an address of this machine, and asks for much.
fn greedy(running: &Running, from: Ipv4Addr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let mut stream = runtime.block_on(socket.connect(running.address)).unwrap().into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    // A controller that closes the connection may do so at once.
    let _ = stream.write_all(&pages());
    stream
}

/// Connections of clients that do not read end, and others take their place.
#[test]
fn clients_that_do_not_read_are_disconnected() {
    let (_folder, running) = started(Config { connections: 12, ..config() });
    let held: Vec<TcpStream> = (0..12).map(|_| greedy(&running, Ipv4Addr::LOCALHOST)).collect();
    until("a connection is accepted", || {
        std::thread::sleep(Duration::from_millis(200));
        running.raw(REQUEST).starts_with("HTTP/1.1 200").then_some(())
    });
    drop(held);
}

/// Clients without a token that do not read, more than there are connections, keep out neither nodes nor others: before
/// the time limit for writing.
#[test]
fn clients_without_a_token_do_not_keep_out_others() {
    let (_folder, running) = started(Config { connections: 12, node: vec![stated(1)], ..guarded() });
    let held: Vec<TcpStream> = (1..=40).map(|last| greedy(&running, Ipv4Addr::new(127, 0, 0, last))).collect();
    // A rejected connection counts until its task has ended.
    let session = until("a node registers", || client(&running, "node").register(&registration(1)).ok());
    let groups = until("an administrator is served", || client(&running, "root").groups(None, None, None).ok());
    assert_eq!((groups.total, session.dead_after_ms), (0, 10_000));
    drop(held);
}

/// Tenants that take all the connections they can have leave room for nodes.
#[test]
fn clients_with_a_token_do_not_keep_out_nodes() {
    let (_folder, running) = started(Config { connections: 12, node: vec![stated(1)], ..guarded() });
    let open = || {
        let mut stream = TcpStream::connect(running.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret of a\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        (stream, answer)
    };
    let streams: Vec<_> = (0..8).map(|_| open()).collect();
    let accepted = streams.iter().filter(|(_, answer)| answer == b"HTTP/1.1 200").count();
    assert_eq!(accepted, 6, "half of all");
    until("a node registers", || client(&running, "node").register(&registration(1)).ok());
    drop(streams);
}

/// A body that does not arrive is waited for for some seconds.
#[test]
fn clients_that_send_no_body_are_refused() {
    let (_folder, running) = started(config());
    let head = "POST /v1/groups HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let answer = running.raw(format!("{head}connection: close\r\ncontent-length: 100\r\n\r\n{{").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("request-timeout"), "{answer}");
}
