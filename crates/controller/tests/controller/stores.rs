//! Stores that fail, are truncated, opened twice, backed up, restored and lost.

use crate::fleet::{Agent, figure_1, registration, until_registered};
use crate::life::ready;
use crate::running::*;
use srdma_api::{GroupState, SourceOrder, SourceReport, SourceState};
use srdma_controller::{BackupError, OnDisk, Row, Store, StoreError, Write, restore, write_backup};
use srdma_group::CnpMode;
use std::io::{BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A store whose disk can be full.
struct Disk {
    store: OnDisk,
    is_full: AtomicBool,
}

impl Store for Disk {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        self.store.rows(prefix, after, most)
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(StoreError::System("no space left on device".to_owned()));
        }
        self.store.commit(writes)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.store.reopen()
    }
}

/// Failed writes are rejected and rolled back; answered ones stay; later writes succeed when there is space again.
#[test]
fn a_full_disk_loses_no_answered_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let disk = Arc::new(Disk { store, is_full: AtomicBool::new(false) });
    let running = Running::start(config(), Arc::clone(&disk) as Arc<dyn Store>, None);
    let client = running.client();
    let group = create(&client, 1).summary.id;
    join(&client, group, 1);
    disk.is_full.store(true, Ordering::Relaxed);
    for number in [2, 3] {
        let path = format!("/v1/groups/{group}/receivers/{}", receiver_address(number));
        let refused = client.put::<srdma_api::Receiver>(&path, &new_receiver(number)).unwrap_err();
        assert_eq!(refused.problem().unwrap().name(), "store-failed");
        until("the join is rolled back", || (show(&client, group).summary.receivers == 1).then_some(()));
    }
    disk.is_full.store(false, Ordering::Relaxed);
    join(&client, group, 2);
    assert_eq!(show(&client, group).summary.receivers, 2);
}

#[test]
fn a_store_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let _open = OnDisk::open(&file).unwrap();
    assert_eq!(OnDisk::open(&file).unwrap_err(), StoreError::InUse { file });
}

/// A truncated store is rejected by name, or has all its rows if only unused pages are missing.
#[test]
fn a_truncated_store_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let rows = {
        let store = OnDisk::open(&file).unwrap();
        let writes: Vec<Write> =
            (0..2000).map(|number| Write::Put { key: format!("row/{number:05}"), value: vec![b'1'; 100] }).collect();
        store.commit(&writes.iter().collect::<Vec<_>>()).unwrap();
        store.rows("", None, usize::MAX).unwrap()
    };
    let whole = std::fs::read(&file).unwrap();
    let mut refused = 0;
    for part in 0..16 {
        std::fs::write(&file, &whole[..whole.len() * part / 16]).unwrap();
        match OnDisk::open(&file).and_then(|store| store.rows("", None, usize::MAX)) {
            Ok(found) => assert!(found == rows, "cut to {part}/16"),
            Err(StoreError::Damaged { file: named, .. }) => {
                assert_eq!(named, file);
                refused += 1;
            }
            Err(other) => panic!("cut to {part}/16: {other}"),
        }
    }
    assert!(refused >= 8, "{refused}");
}

/// A backup restores the same store; a truncated or changed one is rejected.
#[test]
fn a_backup_is_restored_in_full_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let mut running = Running::on_disk(&file);
    let client = running.client();
    let group = create(&client, 1).summary.id;
    (1..=5).for_each(|number| join(&client, group, number));
    let mut backup = Vec::new();
    std::io::copy(&mut client.backup().unwrap(), &mut backup).unwrap();
    let before = show(&client, group);
    drop(running);
    {
        let mut offline = Vec::new();
        let store = opened(&file);
        write_backup(&store, &mut |line| offline.write_all(line.as_bytes())).unwrap();
        assert_eq!(offline, backup);
    }
    let other = folder.path().join("other");
    let store = OnDisk::open(&other).unwrap();
    restore(&store, &mut BufReader::new(&*backup)).unwrap();
    let mut again = Vec::new();
    write_backup(&store, &mut |line| again.write_all(line.as_bytes())).unwrap();
    assert_eq!(again, backup);
    drop(store);
    running = Running::on_disk(&other);
    let after = show(&running.client(), group);
    // Nodes may have a record that is newer than the backup (D115).
    assert_eq!(after.summary.state, GroupState::Verifying);
    let addresses =
        |group: &srdma_api::Group| group.members.iter().map(|one| (one.address, one.qpn)).collect::<Vec<_>>();
    assert_eq!(addresses(&after), addresses(&before));
    for (number, cut) in [0, 1, 20, backup.len() / 2, backup.len() - 2].into_iter().enumerate() {
        let store = OnDisk::open(&folder.path().join(format!("cut-{number}"))).unwrap();
        let refused = restore(&store, &mut BufReader::new(&backup[..cut]));
        assert!(matches!(refused, Err(BackupError::Damaged { .. })), "cut to {cut}: {refused:?}");
        assert!(store.rows("", None, 1).unwrap().is_empty());
    }
    let text = String::from_utf8(backup).unwrap().replacen("\"qpn\":4097", "\"qpn\":4098", 1);
    let store = OnDisk::open(&folder.path().join("changed")).unwrap();
    assert!(matches!(restore(&store, &mut BufReader::new(text.as_bytes())), Err(BackupError::Damaged { .. })));
}

/// The backup of such a store is equal octet by octet; the running controller has its state, and migrates its rows.
#[test]
fn a_store_of_the_first_format_is_migrated() {
    let first = include_bytes!("format-1.backup");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    {
        let store = OnDisk::open(&file).unwrap();
        restore(&store, &mut BufReader::new(&first[..])).unwrap();
        let mut again = Vec::new();
        write_backup(&store, &mut |line| again.write_all(line.as_bytes())).unwrap();
        assert!(again == first);
    }
    let running = Running::on_disk(&file);
    let client = running.client();
    let groups = [1, 2].map(|group| show(&client, group));
    let seen = |group: &srdma_api::Group| (group.source_state, group.members.len(), group.summary.epoch);
    assert_eq!(seen(&groups[0]), (SourceState::Sending, 5, 1));
    assert_eq!(seen(&groups[1]), (SourceState::Idle, 1, 0));
    let audit: srdma_api::AuditPage = client.get("/v1/audit").unwrap().value;
    assert_eq!(audit.entries.len(), 9);
    // The default of that program's time (D238).
    let mut request = new_group(2);
    request.policy.cnp_mode = CnpMode::Leading;
    let again = client.post::<srdma_api::Group>("/v1/groups", &request, Some("a-key"));
    assert_eq!(again.unwrap().value.summary.id, 2, "the key receives the response of the first program");
    drop(running);
    let format = opened(&file).rows("format", None, 1).unwrap();
    assert_eq!(format, [("format".to_owned(), b"6".to_vec())]);
    assert_eq!([1, 2].map(|group| show(&Running::on_disk(&file).client(), group)), groups);
}

/// Stores of a newer format, and of another program, are rejected by name.
#[test]
fn stores_of_other_programs_are_rejected() {
    for (key, value, wanted) in [("format", "99", "format 99"), ("something", "1", "not a store of a controller")] {
        let folder = tempfile::tempdir().unwrap();
        let store = OnDisk::open(&folder.path().join("store")).unwrap();
        let write = Write::Put { key: key.to_owned(), value: value.as_bytes().to_vec() };
        store.commit(&[&write]).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let exit = || std::process::exit(1);
        let refused = runtime.block_on(srdma_controller::Server::start(config(), Arc::new(store), None, exit));
        let text = refused.err().expect("an error").to_string();
        assert!(text.contains(wanted), "{text}");
    }
}

/// The nodes keep the groups of another store.
#[test]
fn a_new_store_does_not_change_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, _) = ready(&running);
    let states: Vec<_> = agents.iter().map(|(number, agent)| (*number, Arc::clone(&agent.state))).collect();
    drop(agents);
    drop(running);
    let agents = |running: &Running| -> Vec<Agent> {
        let with = |(number, state): &(u16, _)| Agent::with(running.client(), registration(*number), Arc::clone(state));
        states.iter().map(with).collect()
    };
    let running = Running::on_disk(&folder.path().join("other"));
    let kept = agents(&running);
    until("all nodes have registered", || {
        let nodes: srdma_api::NodePage = running.client().get("/v1/nodes").unwrap().value;
        (nodes.nodes.len() == 6).then_some(())
    });
    assert!(kept.iter().filter(|agent| agent.group_entry(group).is_some()).count() >= 5);
}

/// After the loss of the store a new one is rebuilt from the recovery snapshots of the headends, and the nodes receive
/// no orders.
#[test]
fn a_rebuilt_store_has_the_groups() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::on_disk(&folder.path().join("store"));
    let agents = figure_1(&running);
    let (group, client) = ready(&running);
    let before = show(&client, group);
    let identity = client.foreign_groups().unwrap().store;
    let states: Vec<_> = agents.iter().map(|(number, agent)| (*number, Arc::clone(&agent.state))).collect();
    drop(agents);
    drop(running);
    for (_, state) in &states {
        state.lock().unwrap().log.clear();
    }
    let store = Arc::new(OnDisk::open(&folder.path().join("new")).unwrap());
    let running = Running::start(config(), store, Some(u64::from_str_radix(&identity, 16).unwrap()));
    let agents: Vec<Agent> =
        states.into_iter().map(|(number, state)| Agent::with(running.client(), registration(number), state)).collect();
    until_registered(&running, 6);
    let client = running.client();
    let path = format!("/v1/groups/{group}");
    until("the group is rebuilt", || client.get::<srdma_api::Group>(&path).ok());
    let rebuilt = until_ready(&client, group);
    assert_eq!(rebuilt.members, before.members);
    let nodes =
        |group: &srdma_api::Group| group.tree.as_ref().unwrap().nodes.iter().map(|node| node.sid).collect::<Vec<_>>();
    assert_eq!(nodes(&rebuilt), nodes(&before));
    assert!(agents.iter().all(|agent| agent.log().is_empty()));
    // The source may have sent since the snapshot: a join asks it to pause (D115).
    join(&client, group, 6);
    let path = format!("{path}/source");
    let report = |report: SourceReport| client.post::<SourceOrder>(&path, &report, None).unwrap().value;
    let pause = until("the source is to pause", || match report(SourceReport::default()) {
        SourceOrder::Pause { round } => Some(round),
        _ => None,
    });
    let paused =
        SourceReport { round: Some(pause), pausing: true, paused_at_psn: Some(0xff_fff0), ..SourceReport::default() };
    until("the source may send again", || matches!(report(paused), SourceOrder::Send { .. }).then_some(()));
    assert_eq!(until_ready(&client, group).summary.receivers, 6);
}
