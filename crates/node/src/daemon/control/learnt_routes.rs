//! Learnt routes in the kernel's main table. The node mirrors them from there like all others: the configuration of a
//! prefix wins, and so do routes of other programs, whose metrics are less.

use srdma_io::netlink::{Change, Kernel, KernelNextHop, LEARNT_PROTOCOL};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};

/// Routes installed in the kernel.
#[derive(Debug, Default)]
pub(super) struct LearntRoutes {
    installed: BTreeMap<Prefix, Vec<KernelNextHop>>,
    /// Routes that the kernel has dropped, with their interface, or has refused.
    lost: BTreeSet<Prefix>,
    /// Prefixes whose refusal was logged.
    logged: BTreeSet<Prefix>,
}

impl LearntRoutes {
    /// Applies a change of the kernel.
    pub(super) fn observe(&mut self, change: &Change) {
        if let Change::Route(route) = change
            && route.protocol == LEARNT_PROTOCOL
            && route.gone
            && self.installed.contains_key(&route.prefix)
        {
            self.lost.insert(route.prefix);
        }
    }

    /// Whether routes are missing that were wanted last.
    pub(super) fn has_lost_routes(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Installs these routes and removes all others. Returns the first refusal of the kernel, once for each prefix.
    pub(super) async fn set(
        &mut self,
        kernel: &mut Kernel,
        wanted: &BTreeMap<Prefix, Vec<KernelNextHop>>,
    ) -> Option<String> {
        let mut refusal = None;
        let lost = std::mem::take(&mut self.lost);
        let unwanted: Vec<Prefix> =
            self.installed.keys().filter(|prefix| !wanted.contains_key(prefix)).copied().collect();
        for prefix in unwanted {
            self.installed.remove(&prefix);
            self.logged.remove(&prefix);
            if let Err(error) = kernel.remove_route(prefix).await {
                refusal.get_or_insert_with(|| format!("cannot remove the route to {prefix} that was learnt: {error}"));
            }
        }
        for (prefix, hops) in wanted {
            if self.installed.get(prefix) == Some(hops) && !lost.contains(prefix) {
                continue;
            }
            self.installed.insert(*prefix, hops.clone());
            match kernel.set_route(*prefix, hops).await {
                Ok(()) => drop(self.logged.remove(prefix)),
                Err(error) => {
                    // The interface may just have gone down, of which IS-IS is notified as well.
                    self.lost.insert(*prefix);
                    if self.logged.insert(*prefix) {
                        refusal.get_or_insert_with(|| {
                            format!("cannot have the kernel send to {prefix} as was learnt: {error}")
                        });
                    }
                }
            }
        }
        refusal
    }
}
