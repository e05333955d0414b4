//! Judges a mapper by what the network knows: which probes it lost, and when links were down.

use crate::network::{Fate, Network};
use srdma_fabric::LinkId;
use srdma_mapper::{Change, Config};

/// What the network knows of a path.
#[derive(Clone, Default)]
struct Path {
    links: Vec<LinkId>,
    /// Whether each probe returned.
    fates: Vec<bool>,
    is_denied: bool,
}

pub(crate) struct Checker {
    config: Config,
    paths: Vec<Path>,
    last_sent_ns: Option<u64>,
    pub(crate) sent: u64,
    pub(crate) returned: u64,
    pub(crate) denied: u64,
    pub(crate) allowed: u64,
}

impl Checker {
    pub(crate) fn new(config: &Config, links: impl Iterator<Item = Vec<LinkId>>) -> Self {
        let paths = links.map(|links| Path { links, ..Path::default() }).collect();
        let config = config.clone();
        Checker { config, paths, last_sent_ns: None, sent: 0, returned: 0, denied: 0, allowed: 0 }
    }

    /// A probe was sent: over the path that it is of, and not too soon.
    pub(crate) fn sent(&mut self, now_ns: u64, path: usize, fate: &Fate) {
        if let Some(last) = self.last_sent_ns.replace(now_ns) {
            assert!(now_ns >= last + self.config.gap_ns, "probes {last} and {now_ns} are too near");
        }
        let path = &mut self.paths[path];
        if let Fate::Lost(link) = fate {
            assert!(path.links.contains(link), "the probe took another path");
        }
        path.fates.push(matches!(fate, Fate::Returns(..)));
        self.sent += 1;
        self.returned += u64::from(matches!(fate, Fate::Returns(..)));
    }

    /// The deny list changed: only by losses in a row, or returned probes in a row.
    pub(crate) fn changed(&mut self, change: &Change) {
        let path = &mut self.paths[change.path];
        assert_ne!(path.is_denied, change.is_denied, "path {} changes to what it is", change.path);
        path.is_denied = change.is_denied;
        let count = if change.is_denied { self.config.deny_after } else { self.config.allow_after };
        let last = path.fates.iter().rev().take(count as usize);
        assert!(path.fates.len() >= count as usize && last.clone().all(|returned| *returned != change.is_denied));
        if change.is_denied {
            self.denied += 1;
        } else {
            self.allowed += 1;
        }
    }

    /// The longest time to find a path dead, in nanoseconds.
    pub(crate) fn deny_within_ns(&self) -> u64 {
        let Config { interval_ns, timeout_ns, gap_ns, deny_after, .. } = self.config;
        let queue = gap_ns * self.paths.len() as u64;
        interval_ns + interval_ns / 16 + (u64::from(deny_after) + 1) * (timeout_ns + queue)
    }

    /// The longest time to allow a path that works again, in nanoseconds.
    pub(crate) fn allow_within_ns(&self) -> u64 {
        let Config { interval_ns, timeout_ns, gap_ns, allow_after, most_intervals, .. } = self.config;
        let one = interval_ns + interval_ns / 16 + timeout_ns + gap_ns * self.paths.len() as u64;
        most_intervals * one + u64::from(8 * allow_after) * one
    }

    /// What has been dead for long enough is denied, and what has worked for long enough is not.
    pub(crate) fn check(&self, now_ns: u64, network: &Network<'_>, is_denied: impl Fn(usize) -> bool) {
        for (index, path) in self.paths.iter().enumerate() {
            assert_eq!(path.is_denied, is_denied(index), "path {index} changed without a report");
            if let Some(since) = now_ns.checked_sub(self.deny_within_ns())
                && path.links.iter().any(|link| network.is_down_throughout(*link, since, now_ns))
            {
                assert!(path.is_denied, "path {index} is dead since {since} and not denied at {now_ns}");
            }
            if let Some(since) = now_ns.checked_sub(self.allow_within_ns()) {
                let works = |link: &LinkId| network.is_lossless(*link) && !network.is_down_within(*link, since, now_ns);
                if path.links.iter().all(works) {
                    assert!(!path.is_denied, "path {index} works since {since} and is denied at {now_ns}");
                }
            }
        }
    }

    /// Whether a path has been dead for so long that it must be denied.
    pub(crate) fn is_dead(&self, now_ns: u64, network: &Network<'_>, links: &[LinkId]) -> bool {
        let since = now_ns.saturating_sub(self.deny_within_ns());
        links.iter().any(|link| network.is_down_throughout(*link, since, now_ns))
    }
}
