//! The controller's store: rows in a file, whose writes are atomic, or in etcd, by the product's store over a simulated
//! server. The rows that were committed are kept apart from etcd, and compared with what each leader reads.

use crate::etcd::{Servers, SimulatedGateway, Weather};
use crate::schedule::{EtcdPlan, Schedule};
use srdma_controller_core::{AUDIT_PREFIX, Row, Write};
use srdma_etcd::{Election, Etcd, EtcdError, EtcdStoreError, Gateway, Leadership, Limits, campaign};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

type Rows = BTreeMap<String, Vec<u8>>;

/// The durable rows, which outlive the controller.
pub(crate) struct Store {
    /// Those of all commits.
    rows: Rows,
    /// Writes of which it is not known whether they were committed. They may be until the next leader has read.
    unknown: Vec<Write>,
    backup: Option<Rows>,
    pub(crate) fails_next: bool,
    etcd: Option<(EtcdPlan, Servers)>,
}

/// A controller's leadership in etcd.
pub(crate) struct Leader {
    etcd: Etcd<SimulatedGateway>,
    lease: i64,
    /// No other controller leads before this time and the lifetime of a lease.
    pub(crate) renewed: Instant,
}

/// Why a controller does not lead.
pub(crate) enum NotLeading {
    /// There is a leader, or etcd did not respond: it tries again.
    Yet,
    /// The store has other rows than were committed.
    Damaged(String),
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Durable,
    /// Another controller leads.
    Deposed,
    /// It is durable or not.
    Unknown,
}

impl Store {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        let etcd = schedule.etcd.clone().map(|plan| (plan, Servers::new()));
        Store { rows: Rows::new(), unknown: Vec::new(), backup: None, fails_next: false, etcd }
    }

    pub(crate) const fn is_in_etcd(&self) -> bool {
        self.etcd.is_some()
    }

    /// The rows but those of the audit log.
    pub(crate) fn state(&self) -> Vec<Row> {
        let is_state = |(key, _): &(&String, &Vec<u8>)| !key.starts_with(AUDIT_PREFIX);
        self.rows.iter().filter(is_state).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub(crate) fn back_up(&mut self) {
        self.backup = Some(self.rows.clone());
    }

    /// Deletes all rows, of a controller that is down.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.unknown.clear();
        if let Some((_, servers)) = &self.etcd {
            servers.clear();
        }
    }

    /// Restores the backup, if there is one, for a controller that is down; returns whether there is.
    pub(crate) fn restore_backup(&mut self, rng: Stream) -> bool {
        let Some(backup) = self.backup.clone() else { return false };
        self.clear();
        let writes = backup.iter().map(|(key, value)| Write::Put { key: key.clone(), value: value.clone() });
        let writes: Vec<Write> = writes.collect();
        if let Some((plan, servers)) = &self.etcd {
            let gateway = servers.gateway(plan, rng);
            let restored = elect(&gateway).ok().flatten().is_some_and(|(lease, created_at)| {
                let etcd = Etcd::open(gateway, created_at, limits(plan));
                etcd.is_ok_and(|etcd| etcd.commit(&refs(&writes)).is_ok() && etcd.gateway().revoke(lease).is_ok())
            });
            debug_assert!(restored, "nothing else uses the servers, and no request is lost");
        }
        apply(&mut self.rows, &writes);
        true
    }

    /// Becomes the leader in etcd, and reads the rows. `None` for a store in a file.
    pub(crate) fn lead(&mut self, now: Instant, rng: Stream, is_rough: bool) -> Option<Result<Leader, NotLeading>> {
        let (plan, servers) = self.etcd.as_ref()?;
        servers.advance(now);
        let gateway = servers.gateway(plan, rng);
        gateway.set_weather(if is_rough { Weather::Rough } else { Weather::Fine });
        let Ok(Some((lease, created_at))) = elect(&gateway) else { return Some(Err(NotLeading::Yet)) };
        let etcd = match Etcd::open(gateway, created_at, limits(plan)) {
            Ok(etcd) => etcd,
            // A leader that cannot read its store ends, and its lease expires.
            Err(EtcdStoreError::Etcd(_) | EtcdStoreError::Deposed) => return Some(Err(NotLeading::Yet)),
            Err(EtcdStoreError::Rows(error)) => return Some(Err(NotLeading::Damaged(error.to_string()))),
        };
        let leader = Leader { etcd, lease, renewed: now };
        Some(self.read(&leader).map(|()| leader))
    }

    /// Reads the rows again, after a write whose outcome is not known.
    pub(crate) fn reopen(&mut self, leader: &Leader) -> Result<(), NotLeading> {
        match leader.etcd.reopen() {
            Ok(()) => self.read(leader),
            Err(EtcdStoreError::Etcd(_) | EtcdStoreError::Deposed) => Err(NotLeading::Yet),
            Err(EtcdStoreError::Rows(error)) => Err(NotLeading::Damaged(error.to_string())),
        }
    }

    /// Compares what a leader reads with what was committed.
    fn read(&mut self, leader: &Leader) -> Result<(), NotLeading> {
        leader.etcd.gateway().set_weather(Weather::Fine);
        let damaged = |error: EtcdStoreError| NotLeading::Damaged(error.to_string());
        let found: Rows = leader.etcd.rows("", None, usize::MAX).map_err(damaged)?.into_iter().collect();
        let mut all = self.rows.clone();
        apply(&mut all, &std::mem::take(&mut self.unknown));
        if found != self.rows && found != all {
            let differs = found.keys().chain(all.keys()).find(|key| found.get(*key) != self.rows.get(*key));
            return Err(NotLeading::Damaged(format!("the row {differs:?} is not as it was committed")));
        }
        self.rows = found;
        Ok(())
    }

    /// Whether a leader reads what was committed.
    pub(crate) fn check(&mut self, leader: &Leader) -> Result<(), String> {
        match self.read(leader) {
            Ok(()) => Ok(()),
            Err(NotLeading::Yet) => Err("etcd does not respond".to_owned()),
            Err(NotLeading::Damaged(text)) => Err(text),
        }
    }

    /// Commits writes; returns the outcome and the time that it took beyond the usual.
    pub(crate) fn commit(
        &mut self,
        now: Instant,
        leader: Option<&Leader>,
        writes: &[Write],
        weather: Weather,
    ) -> (Written, Duration) {
        let (Some((_, servers)), Some(leader)) = (&self.etcd, leader) else {
            apply(&mut self.rows, writes);
            return (Written::Durable, Duration::ZERO);
        };
        servers.advance(now);
        let gateway = leader.etcd.gateway();
        gateway.set_weather(weather);
        gateway.take_waited();
        let result = leader.etcd.commit(&refs(writes));
        gateway.set_weather(Weather::Fine);
        let waited = gateway.take_waited();
        let written = match result {
            Ok(()) => Written::Durable,
            Err(EtcdStoreError::Deposed) => Written::Deposed,
            Err(EtcdStoreError::Etcd(_) | EtcdStoreError::Rows(_)) => Written::Unknown,
        };
        match written {
            Written::Durable => apply(&mut self.rows, writes),
            Written::Unknown => self.unknown = writes.to_vec(),
            Written::Deposed => {}
        }
        (written, waited)
    }

    /// Renews a leader's lease; returns whether it still has one.
    pub(crate) fn renew(&self, now: Instant, leader: &mut Leader) -> bool {
        let Some((_, servers)) = &self.etcd else { return true };
        servers.advance(now);
        let has_lease = leader.etcd.gateway().keep_alive(leader.lease) != Ok(false);
        leader.renewed = now;
        has_lease
    }

    /// Ends a leader's lease at once.
    pub(crate) fn revoke(&self, leader: &Leader) {
        // Nothing is lost in fine weather.
        let _ = leader.etcd.gateway().revoke(leader.lease);
    }
}

fn elect(gateway: &SimulatedGateway) -> Result<Option<(i64, i64)>, EtcdError> {
    Ok(match campaign(gateway, "http://[::1]:8470")? {
        Election::Leads { lease, created_at } => Some((lease, created_at)),
        Election::Not(Leadership::Own | Leadership::Other { .. } | Leadership::Unknown { .. }) => None,
    })
}

fn limits(plan: &EtcdPlan) -> Limits {
    let EtcdPlan { operations, piece_octets, .. } = *plan;
    Limits { operations, octets: Limits::default().octets, piece_octets }
}

fn refs(writes: &[Write]) -> Vec<&Write> {
    writes.iter().collect()
}

fn apply(rows: &mut Rows, writes: &[Write]) {
    for write in writes {
        match write {
            Write::Put { key, value } => rows.insert(key.clone(), value.clone()),
            Write::Delete { key } => rows.remove(key),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches are journals of several pieces, and each request may be the last.
    fn store() -> Store {
        let mut schedule = Schedule::from_seed(1);
        let ppm = 100_000;
        schedule.etcd = Some(EtcdPlan {
            lost_request_ppm: ppm,
            lost_response_ppm: ppm,
            late_ppm: ppm,
            operations: 3,
            piece_octets: 64,
        });
        Store::new(&schedule)
    }

    fn rng(seed: u64) -> Stream {
        Stream::new(seed, "test")
    }

    fn leader(store: &mut Store, seed: u64) -> Leader {
        match store.lead(Instant::ZERO, rng(seed), false) {
            Some(Ok(leader)) => leader,
            Some(Err(NotLeading::Damaged(text))) => panic!("seed {seed}: {text}"),
            Some(Err(NotLeading::Yet)) | None => panic!("seed {seed}: there is no other leader"),
        }
    }

    fn batch(value: u8) -> Vec<Write> {
        let put = |row: u8| Write::Put { key: format!("row{row}"), value: vec![value; 20 * usize::from(row)] };
        (0..6).map(put).collect()
    }

    /// A batch is durable as a whole or not at all, whichever request of it was the last to arrive in time.
    #[test]
    fn batches_are_atomic() {
        let mut durable = 0;
        for seed in 0..200 {
            let mut store = store();
            let first = leader(&mut store, seed);
            let (now, arrive) = (Instant::ZERO, Weather::Ends(seed as u32 % 20));
            assert_eq!(store.commit(now, Some(&first), &batch(1), Weather::Fine).0, Written::Durable);
            let before = store.rows.clone();
            let (outcome, _) = store.commit(now, Some(&first), &batch(2), arrive);
            assert_eq!(outcome == Written::Durable, store.rows != before);
            store.revoke(&first);
            let second = leader(&mut store, seed + 1000);
            assert!(store.rows == before || store.rows["row5"] == [2; 100], "seed {seed}");
            durable += u32::from(store.rows != before);
            assert_eq!(store.commit(now, Some(&second), &batch(3), Weather::Rough).0, Written::Durable, "seed {seed}");
            assert_eq!(store.check(&second), Ok(()), "seed {seed}");
        }
        assert!((20..180).contains(&durable), "{durable} of 200 were durable");
    }

    #[test]
    fn former_leaders_cannot_write() {
        for seed in 0..200 {
            let mut store = store();
            let first = leader(&mut store, seed);
            let now = Instant::ZERO;
            store.commit(now, Some(&first), &batch(1), Weather::Ends(seed as u32 % 20));
            store.revoke(&first);
            let second = leader(&mut store, seed + 1000);
            assert_ne!(store.commit(now, Some(&first), &batch(2), Weather::Rough).0, Written::Durable, "seed {seed}");
            store.unknown.clear();
            assert_eq!(store.check(&second), Ok(()), "seed {seed}");
        }
    }

    #[test]
    fn a_leader_without_a_lease_is_followed_by_another() {
        let mut store = store();
        let mut first = leader(&mut store, 1);
        let at = Instant::from_ns;
        assert!(store.renew(at(4_000_000_000), &mut first));
        assert!(matches!(store.lead(at(8_999_999_999), rng(2), false), Some(Err(NotLeading::Yet))));
        assert!(matches!(store.lead(at(9_000_000_000), rng(2), false), Some(Ok(_))));
        assert!(!store.renew(at(9_000_000_001), &mut first));
    }

    #[test]
    fn backups_replace_all_rows() {
        let mut store = store();
        let first = leader(&mut store, 1);
        store.commit(Instant::ZERO, Some(&first), &batch(1), Weather::Fine);
        let before = store.rows.clone();
        store.back_up();
        store.commit(Instant::ZERO, Some(&first), &batch(2), Weather::Fine);
        assert!(store.restore_backup(rng(2)));
        leader(&mut store, 3);
        assert_eq!(store.rows, before);
    }
}
