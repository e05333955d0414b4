//! More connections than the limit.

use crate::running::*;
use srdma_controller::{Config, OnDisk};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

const REQUEST: &[u8] = b"GET /v1/groups HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Limit of a wait, for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections above the limit receive 503, until others end.
#[test]
fn connections_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let few = Config { connections: 8, ..config() };
    let running = Running::start(few, Arc::new(store), None);
    let held: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    let refused = until("the limit is reached", || {
        let answer = running.raw(REQUEST);
        answer.starts_with("HTTP/1.1 503").then_some(answer)
    });
    assert!(refused.contains("too-many-connections"), "{refused}");
    drop(held);
    until("a connection is accepted", || {
        let answer = running.raw(REQUEST);
        std::thread::sleep(Duration::from_millis(20));
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
}

/// Connects to the controller from an address of this machine.
fn connect(running: &Running, from: Ipv4Addr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(socket.connect(running.address)).unwrap().into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Makes connections without a request, each of which receives 503 and is closed.
fn are_refused(running: &Running, count: usize) {
    let streams: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    for mut stream in streams {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("too-many-connections"), "{answer:?}");
    }
}

/// A request on each connection is answered, and none of them ends.
fn are_served(streams: &mut [TcpStream]) {
    for stream in &mut *streams {
        stream.write_all(b"GET /v1/groups?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    }
    for stream in streams {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "a held connection has ended: {head:?}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        lines.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
        assert_eq!(lines.buffer(), b"", "nothing follows the response");
    }
}

/// 100,000 connections from one address: those within the limit stay and are served, every other one receives 503;
/// requests of another client are answered meanwhile, and their groups exist afterwards.
#[test]
fn a_hundred_thousand_connections_do_not_block_other_clients() {
    const CONNECTIONS: usize = 100_000;
    const THREADS: usize = 4;
    /// Those of all threads fit the queue of connections that the controller has not accepted yet.
    const BATCH: usize = 100;
    const PER_CLIENT: usize = 200;
    const BATCHES: usize = (CONNECTIONS - PER_CLIENT).div_ceil(THREADS * BATCH);
    /// Below the limit of the tenant, for machines on which the connections take long.
    const MOST_GROUPS: u16 = 10_000;
    const HEAD: &str = "POST /v1/groups HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(OnDisk::open(&folder.path().join("store")).unwrap());
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let running = Running::start(Config { listen, connections_per_client: PER_CLIENT, ..config() }, store, None);
    let is_over = AtomicBool::new(false);
    let mut held: Vec<TcpStream> = (0..PER_CLIENT).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    // Now all of them are counted.
    are_served(&mut held);
    let created = std::thread::scope(|scope| {
        let flood = || (0..BATCHES).for_each(|_| are_refused(&running, BATCH));
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(flood)).collect();
        let other = scope.spawn(|| {
            let mut created = 0;
            while !is_over.load(Ordering::Relaxed) && created < MOST_GROUPS {
                created += 1;
                let body = serde_json::to_string(&new_group(created)).unwrap();
                let length = format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let mut stream = connect(&running, Ipv4Addr::new(127, 0, 0, 9));
                stream.write_all(format!("{HEAD}{length}{body}").as_bytes()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
                std::thread::sleep(Duration::from_millis(50));
            }
            created
        });
        let served = scope.spawn(|| {
            // Sooner than a connection without a request is closed.
            while !is_over.load(Ordering::Relaxed) {
                are_served(&mut held);
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        let refused: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        refused.into_iter().for_each(Result::unwrap);
        served.join().unwrap();
        other.join().unwrap()
    });
    are_served(&mut held);
    println!("{created} groups were created during {} refused connections", BATCHES * THREADS * BATCH);
    drop(held);
    // The address may connect again as soon as the controller has seen the end of one.
    let page: srdma_api::GroupPage =
        until("a connection is accepted", || Some(running.client().get("/v1/groups").ok()?.value));
    assert!(created > 0);
    assert_eq!(page.total, u64::from(created));
}
