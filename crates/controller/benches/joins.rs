//! Response times of the controller: `cargo bench -p srdma-controller`.
//!
//! Joins from 64 clients over HTTP, each durable before its answer, beside the same rows written to a plain redb in
//! batches of the same size; then 10,000 groups listed and restored.

use redb::{Database, TableDefinition};
use srdma_api::{Client, NewGroup, NewReceiver, SourceAddress};
use srdma_controller::{Config, OnDisk, Row, Server, Store, StoreError, Write};
use srdma_figures::report;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const CLIENTS: usize = 64;
const JOINS_OF_A_CLIENT: usize = 500;
const ROUNDS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let [mut rates, mut plain, mut ratios, mut slowest] = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        let (rate, p99, batch) = joins(&folder.path().join(format!("joins-{round}")));
        let yardstick = plain_redb(&folder.path().join(format!("plain-{round}")), batch);
        rates.push(rate);
        plain.push(yardstick);
        ratios.push(rate / yardstick);
        slowest.push(p99.as_secs_f64() * 1e3);
    }
    report(format!("joins from {CLIENTS} clients, each durable before its response"), "a second", rates);
    report("their p99", "ms", slowest);
    report("yardstick: the same rows in a plain redb, as many in a transaction", "a second", plain);
    report("ratio of a round to its yardstick", "", ratios);
    many_groups(&folder.path().join("many"));
}

/// A store that counts its batches.
struct Counting {
    store: OnDisk,
    batches: AtomicU64,
}

impl Store for Counting {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        self.store.rows(prefix, after, most)
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.store.commit(writes)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.store.reopen()
    }
}

fn start(file: &Path) -> (Runtime, SocketAddr, Arc<Counting>) {
    let runtime = Runtime::new().expect("a runtime");
    let config = Config { listen: vec!["[::1]:0".parse().expect("an address")], ..Config::default() };
    let store = OnDisk::open(file).expect("a store");
    let store = Arc::new(Counting { store, batches: AtomicU64::new(0) });
    let start = Server::start(config, Arc::clone(&store) as Arc<dyn Store>, None, || std::process::exit(1));
    let server = runtime.block_on(start).expect("a controller");
    let address = server.addresses()[0];
    runtime.spawn(server.run(std::future::pending()));
    (runtime, address, store)
}

fn group(number: u16) -> NewGroup {
    let source = SourceAddress { address: "2001:db8:aa::1".parse().expect("an address"), qpn: 2 + u32::from(number) };
    let proxy = Some(Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1 + number));
    NewGroup { proxy, ..NewGroup::new(source, 0xd0_0000) }
}

/// Joins a second, their 99th percentile, and how many shared a batch.
fn joins(file: &Path) -> (f64, Duration, usize) {
    let (runtime, address, store) = start(file);
    let client = Client::new(&format!("http://{address}"), None, None).expect("a client");
    for number in 0..CLIENTS as u16 {
        client.post::<srdma_api::Group>("/v1/groups", &group(number), None).expect("a group");
    }
    let before = store.batches.load(Ordering::Relaxed);
    let all = Barrier::new(CLIENTS + 1);
    let (elapsed, mut times) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn({
                    let all = &all;
                    move || join(address, number, all)
                })
            })
            .collect();
        all.wait();
        let began = Instant::now();
        let times: Vec<Duration> =
            threads.into_iter().flat_map(|thread| thread.join().expect("a client ends")).collect();
        (began.elapsed(), times)
    });
    let batches = store.batches.load(Ordering::Relaxed) - before;
    drop(store);
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    runtime.shutdown_timeout(Duration::from_secs(1));
    let batch = (times.len() as u64).div_ceil(batches.max(1)) as usize;
    (times.len() as f64 / elapsed.as_secs_f64(), p99, batch)
}

/// One client's joins; each waits for the answer to the one before.
fn join(address: SocketAddr, number: usize, all: &Barrier) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut answers = BufReader::new(stream.try_clone().expect("a connection"));
    let mut times = Vec::with_capacity(JOINS_OF_A_CLIENT);
    all.wait();
    for receiver in 0..JOINS_OF_A_CLIENT {
        let body = serde_json::to_string(&NewReceiver::new(2 + number as u32, 4096));
        let body = body.expect("a body");
        let target = Ipv6Addr::new(0x2001, 0xdb8, 0xbb, number as u16, 0, 0, 0, 1 + receiver as u16);
        let request = format!(
            "PUT /v1/groups/{}/receivers/{target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            1 + number,
            body.len()
        );
        let began = Instant::now();
        stream.write_all(request.as_bytes()).expect("sent");
        read_answer(&mut answers);
        times.push(began.elapsed());
    }
    times
}

fn read_answer(answers: &mut BufReader<TcpStream>) {
    let mut line = String::new();
    answers.read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    let mut length = 0;
    loop {
        line.clear();
        answers.read_line(&mut line).expect("a header");
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    answers.read_exact(&mut body).expect("a body");
}

/// Joins a second of a redb that is given rows as long as a join's, so many joins in a transaction.
fn plain_redb(file: &Path, batch: usize) -> f64 {
    const ROWS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("rows");
    let database = Database::create(file).expect("a database");
    let (member, group, audit, site) = (vec![b'm'; 110], vec![b'g'; 700], vec![b'a'; 130], vec![b's'; 90]);
    let joins = CLIENTS * JOINS_OF_A_CLIENT;
    let began = Instant::now();
    for first in (0..joins).step_by(batch) {
        let transaction = database.begin_write().expect("a transaction");
        {
            let mut table = transaction.open_table(ROWS).expect("a table");
            for join in first..joins.min(first + batch) {
                let id = join % CLIENTS;
                let key = format!("member/{id:010}/2001:db8:bb:{id:x}::{join:x}");
                table.insert(key.as_str(), member.as_slice()).expect("a row");
                table.insert(format!("group/{id:010}").as_str(), group.as_slice()).expect("a row");
                table.insert(format!("audit/{join:020}").as_str(), audit.as_slice()).expect("a row");
                table.insert("site", site.as_slice()).expect("a row");
            }
        }
        transaction.commit().expect("committed");
    }
    joins as f64 / began.elapsed().as_secs_f64()
}

/// 10,000 groups, each with a receiver: listed, and restored after a restart.
fn many_groups(file: &Path) {
    {
        let (runtime, address, _) = start(file);
        let client = Client::new(&format!("http://{address}"), None, None).expect("a client");
        let began = Instant::now();
        for number in 0..10_000 {
            client.post::<srdma_api::Group>("/v1/groups", &group(number), None).expect("a group");
        }
        let created = began.elapsed().as_secs_f64();
        report("creating 10,000 groups by one client, one after the other", "s", [created]);
        let page = |limit: usize| {
            let began = Instant::now();
            let page: srdma_api::GroupPage = client.get(&format!("/v1/groups?limit={limit}")).expect("a page").value;
            assert_eq!(page.groups.len(), limit);
            began.elapsed().as_secs_f64() * 1e3
        };
        report("list of 10,000 groups in one page", "ms", (0..21).map(|_| page(10_000)));
        report("first page of 100 of them", "ms", (0..21).map(|_| page(100)));
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
    while OnDisk::open(file).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    let (runtime, address, _) = start(file);
    let client = Client::new(&format!("http://{address}"), None, None).expect("a client");
    let page: srdma_api::GroupPage = client.get("/v1/groups?limit=1").expect("a page").value;
    assert_eq!(page.total, 10_000);
    report("restart with 10,000 groups, up to the first response", "s", [began.elapsed().as_secs_f64()]);
    drop(runtime);
    // The trait is what others write by: the rows must be those that were answered.
    let store = loop {
        match OnDisk::open(file) {
            Ok(store) => break store,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(store.rows("group/", None, usize::MAX).expect("rows").len(), 10_000);
    store.commit(&[&Write::Delete { key: "none".to_owned() }]).expect("it can be written");
}
