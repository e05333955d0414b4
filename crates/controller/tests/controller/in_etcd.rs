//! The store behind a real etcd: batches of any size, lost and delayed responses, deposed and killed leaders.

mod proxy;
pub(crate) mod server;

use proxy::Proxy;
use server::{Secured, Server};
use srdma_controller::{
    BackupError, Etcd, EtcdTrust, Leadership, Standby, Store, StoreError, Write, restore, write_backup,
};
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

fn lead(servers: &str) -> Etcd {
    Standby::new(servers, "http://[::1]:8470", &EtcdTrust::default()).unwrap().lead(|_| (), || ()).unwrap()
}

fn put(key: &str, value: impl Into<Vec<u8>>) -> Write {
    Write::Put { key: key.to_owned(), value: value.into() }
}

fn delete(key: &str) -> Write {
    Write::Delete { key: key.to_owned() }
}

fn commit(store: &Etcd, writes: &[Write]) -> Result<(), StoreError> {
    store.commit(&writes.iter().collect::<Vec<_>>())
}

/// Keys with their values, the latter as text.
fn rows(store: &Etcd, prefix: &str) -> Vec<(String, String)> {
    let rows = store.rows(prefix, None, usize::MAX).unwrap();
    rows.into_iter().map(|(key, value)| (key, String::from_utf8(value).unwrap())).collect()
}

fn row(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn rows_are_read_by_the_next_leader() {
    let server = Server::start();
    let store = lead(&server.url());
    commit(&store, &[put("group/2", "two"), put("group/1", "one"), put("member/1", "m"), put("site", "s")]).unwrap();
    commit(&store, &[delete("member/1"), put("site", "first"), put("site", "last"), delete("not/there")]).unwrap();
    commit(&store, &[]).unwrap();
    assert_eq!(rows(&store, ""), [row("group/1", "one"), row("group/2", "two"), row("site", "last")]);
    assert_eq!(rows(&store, "group/"), [row("group/1", "one"), row("group/2", "two")]);
    let keys = |after, most| {
        let rows = store.rows("group/", after, most).unwrap();
        rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(keys(None, 1), ["group/1"]);
    assert_eq!(keys(Some("group/1"), 5), ["group/2"]);
    assert_eq!(keys(Some("group/2"), 5), [""; 0]);
    drop(store);
    let next = lead(&server.url());
    assert_eq!(rows(&next, "site"), [row("site", "last")]);
}

/// More operations, and more octets, than etcd accepts in a transaction.
#[test]
fn batches_and_values_may_exceed_a_transaction() {
    let server = Server::start();
    let store = lead(&server.url());
    let many: Vec<Write> = (0..1500).map(|number| put(&format!("many/{number:05}"), vec![b'x'; 3000])).collect();
    commit(&store, &many).unwrap();
    let long = "long ".repeat(500_000);
    commit(&store, &[put("job/long", long.as_str()), put("job/short", "short")]).unwrap();
    let found = rows(&store, "many/");
    assert_eq!(found.len(), 1500);
    assert!(found.iter().all(|(_, value)| value.len() == 3000));
    assert!(rows(&store, "job/") == [row("job/long", &long), row("job/short", "short")]);
    let longer = "longer".repeat(300_000);
    commit(&store, &[put("job/long", longer.as_str())]).unwrap();
    drop(store);
    let next = lead(&server.url());
    assert!(rows(&next, "job/long") == [row("job/long", &longer)]);
    commit(&next, &[put("job/long", "not any more")]).unwrap();
    assert_eq!(rows(&next, "job/long"), [row("job/long", "not any more")]);
    let gone: Vec<Write> = (0..1500).map(|number| delete(&format!("many/{number:05}"))).collect();
    commit(&next, &gone).unwrap();
    assert_eq!(rows(&next, "").len(), 2);
    let left = server.keys("srdma/");
    assert_eq!(left, ["srdma/batch", "srdma/leader", "srdma/row/job/long", "srdma/row/job/short"], "no piece is left");
}

/// Also before it has detected that it is deposed.
#[test]
fn a_deposed_leader_cannot_write() {
    let server = Server::start();
    let first = lead(&server.url());
    commit(&first, &[put("a", "1")]).unwrap();
    server.delete("srdma/leader");
    assert_eq!(commit(&first, &[put("a", "2")]), Err(StoreError::Deposed));
    let many: Vec<Write> = (0..500).map(|number| put(&format!("b/{number}"), "2")).collect();
    assert_eq!(commit(&first, &many), Err(StoreError::Deposed));
    let second = lead(&server.url());
    assert_eq!(commit(&first, &[put("a", "3")]), Err(StoreError::Deposed));
    assert_eq!(first.reopen(), Err(StoreError::Deposed));
    assert_eq!(rows(&second, ""), [row("a", "1")]);
    commit(&second, &[put("a", "4")]).unwrap();
    assert_eq!(rows(&second, ""), [row("a", "4")]);
}

/// It cannot renew its lease.
#[test]
fn a_partitioned_leader_is_deposed_before_another_leads() {
    let server = Server::start();
    let proxy = Proxy::to(server.port);
    let (sender, deposed) = channel();
    let standby = Standby::new(&proxy.url(), "http://[::1]:1", &EtcdTrust::default()).unwrap();
    let first = standby.lead(|_| (), move || sender.send(Instant::now()).unwrap()).unwrap();
    commit(&first, &[put("a", "1")]).unwrap();
    proxy.cut();
    let (sender, leaders) = channel();
    let second = Standby::new(&server.url(), "http://[::1]:2", &EtcdTrust::default()).unwrap();
    let second = second.lead(|leadership| sender.send(leadership.clone()).unwrap(), || ()).unwrap();
    let leads = Instant::now();
    let deposed = deposed.recv_timeout(Duration::from_secs(60)).expect("it is deposed");
    assert!(deposed <= leads);
    assert_eq!(leaders.recv(), Ok(Leadership::Other { url: "http://[::1]:1".to_owned() }));
    assert_eq!(leaders.iter().take(1).last(), Some(Leadership::Own));
    assert_eq!(rows(&second, ""), [row("a", "1")]);
}

#[test]
fn a_batch_with_a_lost_response_is_committed_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.port);
    let store = lead(&proxy.url());
    commit(&store, &[put("a", "1")]).unwrap();
    proxy.lose_responses("kv/txn", 1);
    commit(&store, &[put("a", "2"), put("b", "2")]).unwrap();
    assert_eq!(proxy.lost(), 1);
    assert_eq!(rows(&store, ""), [row("a", "2"), row("b", "2")]);
    commit(&store, &[put("a", "3"), delete("b")]).unwrap();
    assert_eq!(rows(&store, ""), [row("a", "3")]);
}

/// A slow server forwards the request after later batches were committed.
#[test]
fn a_delayed_batch_changes_nothing() {
    let server = Server::start();
    let proxy = Proxy::to(server.port);
    let store = lead(&format!("{},{}", proxy.url(), server.url()));
    commit(&store, &[put("a", "1")]).unwrap();
    proxy.hold("kv/txn");
    commit(&store, &[put("a", "2")]).unwrap();
    commit(&store, &[put("a", "3")]).unwrap();
    assert_eq!(proxy.forward_held(), 1, "a request was held");
    assert_eq!(rows(&store, ""), [row("a", "3")]);
    commit(&store, &[put("b", "4")]).unwrap();
    assert_eq!(rows(&store, ""), [row("a", "3"), row("b", "4")]);
}

/// A batch of several transactions, interrupted after each of them: the next leader has all of it or nothing.
#[test]
fn a_long_batch_is_atomic() {
    let server = Server::start();
    let batch = |value: &str| (0..ROWS).map(|index| put(&format!("row/{index:03}"), value)).collect::<Vec<Write>>();
    let mut outcomes = Vec::new();
    for passed in 0..7 {
        let proxy = Proxy::to(server.port);
        let store = lead(&proxy.url());
        commit(&store, &batch("before")).unwrap();
        proxy.cut_after("kv/txn", passed);
        // Its retransmissions fail.
        std::thread::spawn(move || commit(&store, &batch("after")));
        proxy.wait_until_cut();
        server.delete("srdma/leader");
        let next = lead(&server.url());
        let found = rows(&next, "row/");
        assert_eq!(found.len(), ROWS);
        assert!(found.iter().all(|(_, value)| *value == found[0].1), "in part, after {passed} transactions");
        outcomes.push(found[0].1.clone());
        assert!(!server.keys("srdma/").iter().any(|key| key.contains("journal")), "after {passed} transactions");
    }
    // The first transaction deletes old pieces, the second writes new ones, and the third commits the batch.
    assert_eq!(outcomes, ["before", "before", "before", "after", "after", "after", "after"]);
}

#[test]
fn a_commit_waits_while_etcd_restarts() {
    let mut server = Server::start();
    let store = lead(&server.url());
    commit(&store, &[put("a", "1")]).unwrap();
    server.restart();
    commit(&store, &[put("a", "2")]).unwrap();
    assert_eq!(rows(&store, ""), [row("a", "2")]);
}

/// An etcd with rows is rejected, and so is one that a controller uses.
#[test]
fn a_backup_is_restored_into_an_empty_etcd() {
    let server = Server::start();
    let backup = include_bytes!("format-1.backup");
    let standby = Standby::new(&server.url(), "http://[::1]:8470", &EtcdTrust::default()).unwrap();
    let store = standby.lead_now().unwrap();
    let refused = Standby::new(&server.url(), "http://[::1]:8471", &EtcdTrust::default()).unwrap().lead_now();
    assert_eq!(refused.unwrap_err(), StoreError::Led { url: "http://[::1]:8470".to_owned() });
    restore(&store, &mut &backup[..]).unwrap();
    assert!(matches!(restore(&store, &mut &backup[..]), Err(BackupError::NotEmpty)));
    store.resign();
    let mut again = Vec::new();
    let store = standby.lead_now().unwrap();
    write_backup(&store, &mut |line| again.write_all(line.as_bytes())).unwrap();
    assert!(again == backup);
}

/// TLS with client certificates: each must trust the other.
#[test]
fn etcd_and_controller_authenticate_each_other() {
    let secured = Secured::start();
    let url = secured.url();
    let lead = |trust: &EtcdTrust| Standby::new(&url, "http://[::1]:8470", trust).unwrap().lead_now();
    let since = Instant::now();
    let store = loop {
        match lead(&secured.trust(true, true)) {
            Err(error) if since.elapsed() > Duration::from_secs(60) => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
            Ok(store) => break store,
        }
    };
    commit(&store, &[put("group/1", "one")]).unwrap();
    assert_eq!(rows(&store, ""), [row("group/1", "one")]);
    store.resign();
    for (has_ca, has_certificate) in [(true, false), (false, true)] {
        let refused = lead(&secured.trust(has_ca, has_certificate)).unwrap_err();
        assert!(matches!(refused, StoreError::System(_)), "{refused}");
    }
    let nowhere = EtcdTrust { ca: Some("/nonexistent".into()), client: None };
    let unusable = Standby::new(&url, "http://[::1]:8470", &nowhere).unwrap_err();
    assert!(unusable.to_string().contains("/nonexistent"), "{unusable}");
}

#[test]
fn an_invalid_server_url_is_reported() {
    let refused = Standby::new("http://[::1]:2379,etcd.example", "http://[::1]:1", &EtcdTrust::default()).unwrap_err();
    let expected =
        "the store cannot be used: \"etcd.example\": expected the URL of an etcd server, such as http://[::1]:2379";
    assert_eq!(refused.to_string(), expected);
}

/// The rows of a batch of the controller that is killed, which is more than fits into a transaction.
const ROWS: usize = 300;

const KILLED_LEADER: &str = "SRDMA_TEST_ETCD";

/// Runs one of these tests as a process that can be killed; the variable makes it do something else.
pub(crate) fn again(test: &str, variable: &str, value: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(variable, value);
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// The process that the test below starts and kills.
fn write_until_killed(servers: &str) {
    let store = lead(servers);
    for number in 1.. {
        let batch: Vec<Write> = (0..ROWS).map(|index| put(&format!("row/{index:03}"), number.to_string())).collect();
        commit(&store, &batch).unwrap();
        println!("\nwritten {number}");
    }
}

/// The next leader has all acknowledged batches, and each batch in full or not at all.
#[test]
fn acknowledged_batches_survive_the_death_of_the_leader() {
    if let Ok(servers) = std::env::var(KILLED_LEADER) {
        return write_until_killed(&servers);
    }
    let server = Server::start();
    for (round, after_ms) in [700, 1130].into_iter().enumerate() {
        let mut leader =
            again("in_etcd::acknowledged_batches_survive_the_death_of_the_leader", KILLED_LEADER, &server.url());
        let lines = BufReader::new(leader.stdout.take().unwrap()).lines();
        let (sender, numbers) = channel();
        std::thread::spawn(move || {
            let written = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("written ")?.parse().ok());
            written.for_each(|number: u64| sender.send(number).unwrap());
        });
        let first = numbers.recv_timeout(Duration::from_secs(60)).expect("it writes");
        std::thread::sleep(Duration::from_millis(after_ms));
        leader.kill().unwrap();
        leader.wait().unwrap();
        let killed = Instant::now();
        let acknowledged = numbers.iter().last().unwrap_or(first);
        let next = lead(&server.url());
        println!("round {round}: batch {acknowledged} was the last, the next one leads {:?} later", killed.elapsed());
        let found = rows(&next, "row/");
        let values: Vec<u64> = found.iter().map(|(_, value)| value.parse().unwrap()).collect();
        assert_eq!(values.len(), ROWS);
        assert!(values.iter().all(|value| *value == values[0]), "a batch is incomplete");
        // The last one may have been durable before its acknowledgement was read.
        assert!((acknowledged..=acknowledged + 1).contains(&values[0]), "{} after {acknowledged}", values[0]);
    }
}
