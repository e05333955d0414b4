//! The file of a deny list, which a mapper replaces while the node runs (D241).

use super::watched_file::WatchedFile;
use crate::configuration::{Configuration, Denied, DenyList, DenyListSettings};
use std::future::pending;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Interval for checking the file; a change counts when the next check finds the same.
const PERIOD: Duration = Duration::from_millis(20);

/// Tells when the file has changed.
#[derive(Debug)]
pub(super) struct DenyWatch {
    watched: Option<(WatchedFile, Interval)>,
}

impl DenyWatch {
    /// Of the file that a configuration names, which is about to be read.
    pub(super) fn of(configuration: &Configuration) -> Self {
        let watched = configuration.deny_list.as_ref().map(|DenyListSettings { file, .. }| {
            let mut period = interval_at(Instant::now() + PERIOD, PERIOD);
            period.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (WatchedFile::new(file), period)
        });
        DenyWatch { watched }
    }

    /// The file is about to be read again.
    pub(super) fn is_read(&mut self) {
        if let Some((file, _)) = &mut self.watched {
            file.is_read();
        }
    }

    /// Waits until the file has changed, is there or is gone.
    pub(super) async fn changed(&mut self) {
        let Some((file, period)) = &mut self.watched else { return pending().await };
        loop {
            period.tick().await;
            if file.has_changed_or_gone() {
                return;
            }
        }
    }
}

/// Reads the list that a configuration names, and denies its paths there. A file that is not there denies none.
///
/// # Errors
///
/// The file cannot be read, or is not that list.
pub(super) fn deny(configuration: &mut Configuration) -> Result<(), String> {
    let Some(DenyListSettings { file, nic, .. }) = &configuration.deny_list else { return Ok(()) };
    let name = file.display().to_string();
    let list = match std::fs::read_to_string(file) {
        Ok(text) => DenyList::parse(&text, nic).map_err(|reason| format!("{name}: {reason}"))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let Denied { paths, spared } = configuration.deny(&list);
    tracing::info!(file = name, paths, "deny list read");
    for prefix in spared {
        tracing::warn!(%prefix, "the deny list has every path of the route: none is denied");
    }
    Ok(())
}
