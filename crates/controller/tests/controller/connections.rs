//! More connections than the limit.

use crate::running::*;
use srdma_controller::{Config, OnDisk};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REQUEST: &[u8] = b"GET /v1/groups HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

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

/// Makes connections without a request and returns those without a response: they replaced a connection that was idle
/// for too long, or their response is late. The time that this takes does not grow with their number.
fn unanswered(running: &Running, count: usize) -> Vec<TcpStream> {
    let mut streams: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    let deadline = Instant::now() + Duration::from_millis(100);
    streams.retain_mut(|stream| {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).unwrap();
        let mut answer = String::new();
        match stream.read_to_string(&mut answer) {
            Ok(_) => {
                assert!(answer.contains("503") && answer.contains("too-many-connections"), "{answer:?}");
                false
            }
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "no response in time: {error}");
                true
            }
        }
    });
    streams
}

/// 100,000 connections from one address: those within the limit stay, the others receive 503; requests of another
/// client are answered meanwhile, and their groups exist afterwards.
#[test]
fn a_hundred_thousand_connections_do_not_block_other_clients() {
    const CONNECTIONS: usize = 100_000;
    const THREADS: usize = 4;
    const BATCH: usize = 100;
    const PER_CLIENT: usize = 2000;
    /// Below the limit of the tenant, for machines on which the connections take long.
    const MOST_GROUPS: u16 = 10_000;
    const HEAD: &str = "POST /v1/groups HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(OnDisk::open(&folder.path().join("store")).unwrap());
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let running = Running::start(Config { listen, connections_per_client: PER_CLIENT, ..config() }, store, None);
    let is_over = AtomicBool::new(false);
    let mut held: Vec<TcpStream> = (0..PER_CLIENT).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    let (kept, created) = std::thread::scope(|scope| {
        let flood = || {
            let mut kept = VecDeque::new();
            for _ in 0..(CONNECTIONS - PER_CLIENT) / THREADS / BATCH {
                kept.extend(unanswered(&running, BATCH));
                // Such late ones must not take all file descriptors.
                kept.drain(..kept.len().saturating_sub(PER_CLIENT));
            }
            kept
        };
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
        let kept: Vec<TcpStream> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        (kept, other.join().unwrap())
    });
    held.extend(kept);
    println!("{} of {CONNECTIONS} connections were held, {created} groups were created meanwhile", held.len());
    drop(held);
    let page: srdma_api::GroupPage = running.client().get("/v1/groups").unwrap().value;
    assert_eq!(page.total, u64::from(created));
}
