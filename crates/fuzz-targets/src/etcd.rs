//! The controller's store in etcd, whatever its servers respond: reading ends, and rows are in order.

use srdma_etcd::{
    Comparison, Election, Etcd, EtcdError, EtcdStoreError, Gateway, Limits, Operation, Outcome, Range, campaign,
    response,
};
use std::cell::Cell;
use std::time::Duration;

/// Responses one after the other, again and again. A server that does not respond costs time.
struct Responses<'a> {
    lines: Vec<&'a str>,
    requests: Cell<usize>,
    now: Cell<Duration>,
}

impl Responses<'_> {
    fn next<T>(&self, read: fn(&str) -> serde_json::Result<T>) -> Result<T, EtcdError> {
        let number = self.requests.replace(self.requests.get() + 1);
        // Each key that is read is behind the one before, and a transaction is given up after 8 s.
        assert!(number <= 100 * (self.lines.len() + 10), "requests do not end");
        self.wait(Duration::from_millis(1));
        let line = self.lines.get(number % self.lines.len().max(1)).copied().unwrap_or_default();
        match line.strip_prefix('!') {
            Some(text) => Err(EtcdError::Rejected(response::error(text))),
            None => read(line).map_err(|error| EtcdError::NoResponse(error.to_string())),
        }
    }
}

impl Gateway for Responses<'_> {
    fn range(&self, _key: &[u8], _end: Option<&[u8]>, _limit: usize) -> Result<Range, EtcdError> {
        self.next(response::range)
    }

    fn transact(&self, _: &[Comparison], _: &[Operation], _: &[Operation]) -> Result<Outcome, EtcdError> {
        self.next(response::outcome)
    }

    fn grant(&self, _ttl_s: u64) -> Result<i64, EtcdError> {
        self.next(response::lease)
    }

    fn keep_alive(&self, _lease: i64) -> Result<bool, EtcdError> {
        self.next(response::is_alive)
    }

    fn revoke(&self, _lease: i64) -> Result<(), EtcdError> {
        self.next(response::empty)
    }

    fn now(&self) -> Duration {
        self.now.get()
    }

    fn wait(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }
}

/// An election, the opening of the store, and all rows; each line of the input is a response.
pub fn etcd(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let responses = Responses { lines: text.lines().collect(), requests: Cell::default(), now: Cell::default() };
    let created_at = match campaign(&responses, "http://[::1]:1") {
        Ok(Election::Leads { created_at, .. }) => created_at,
        Ok(Election::Not(_)) | Err(_) => 1,
    };
    let read = || -> Result<(), EtcdStoreError> {
        let etcd = Etcd::open(responses, created_at, Limits::default())?;
        let rows = etcd.rows("", None, usize::MAX)?;
        assert!(rows.is_sorted_by(|(key, _), (next, _)| key <= next), "{rows:?}");
        Ok(())
    };
    if let Err(error) = read() {
        assert!(!error.to_string().is_empty());
    }
}
