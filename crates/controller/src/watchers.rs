//! Notifications by key: a change of one group wakes only what waits for that group.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Waiting tasks by key. A key without waiting tasks takes no room once it was notified.
#[derive(Debug)]
pub(crate) struct Watchers<K>(Mutex<BTreeMap<K, watch::Sender<()>>>);

impl<K> Default for Watchers<K> {
    fn default() -> Self {
        Watchers(Mutex::default())
    }
}

impl<K: Copy + Ord> Watchers<K> {
    /// A receiver that sees all notifications from now on; to be taken before the state is read.
    pub(crate) fn subscribe(&self, key: K) -> watch::Receiver<()> {
        self.lock().entry(key).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    pub(crate) fn notify(&self, key: K) {
        let mut senders = self.lock();
        if senders.get(&key).is_some_and(|sender| sender.send(()).is_err()) {
            senders.remove(&key);
        }
    }

    /// Notifies all tasks: their receivers are closed.
    pub(crate) fn notify_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tasks_of_a_key_are_woken() {
        let watchers = Watchers::default();
        let (one, two) = (watchers.subscribe(1), watchers.subscribe(2));
        watchers.notify(1);
        assert!(one.has_changed().unwrap() && !two.has_changed().unwrap());
        drop((one, two));
        watchers.notify(1);
        watchers.notify(2);
        assert!(watchers.lock().is_empty());
    }
}
