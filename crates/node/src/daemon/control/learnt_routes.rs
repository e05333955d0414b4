//! Learnt routes in the kernel's main table. The node mirrors them from there like all others: the configuration of a
//! prefix wins, and so do routes of other programs, whose metrics are less.

use srdma_io::netlink::{Change, Kernel, KernelNextHop, LEARNT_PROTOCOL};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};

/// Routes installed in the kernel.
#[derive(Debug, Default)]
pub(super) struct LearntRoutes {
    told: BTreeMap<Prefix, Vec<KernelNextHop>>,
    /// Routes that the kernel has dropped, with their interface, or has refused.
    lost: BTreeSet<Prefix>,
    /// Prefixes whose refusal was logged.
    complained: BTreeSet<Prefix>,
}

impl LearntRoutes {
    /// Applies a change of the kernel.
    pub(super) fn hear(&mut self, change: &Change) {
        if let Change::Route(route) = change
            && route.protocol == LEARNT_PROTOCOL
            && route.gone
            && self.told.contains_key(&route.prefix)
        {
            self.lost.insert(route.prefix);
        }
    }

    /// Whether routes are missing that were wanted last.
    pub(super) fn has_lost_some(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Has the kernel have these routes, and no others. Returns what it refuses, once for each prefix.
    pub(super) async fn set(
        &mut self,
        kernel: &mut Kernel,
        wanted: &BTreeMap<Prefix, Vec<KernelNextHop>>,
    ) -> Option<String> {
        let mut refusal = None;
        let lost = std::mem::take(&mut self.lost);
        let unwanted: Vec<Prefix> = self.told.keys().filter(|prefix| !wanted.contains_key(prefix)).copied().collect();
        for prefix in unwanted {
            self.told.remove(&prefix);
            self.complained.remove(&prefix);
            if let Err(error) = kernel.remove_route(prefix).await {
                refusal.get_or_insert_with(|| format!("cannot remove the route to {prefix} that was learnt: {error}"));
            }
        }
        for (prefix, hops) in wanted {
            if self.told.get(prefix) == Some(hops) && !lost.contains(prefix) {
                continue;
            }
            self.told.insert(*prefix, hops.clone());
            match kernel.set_route(*prefix, hops).await {
                Ok(()) => drop(self.complained.remove(prefix)),
                Err(error) => {
                    // The interface may just have gone down, of which IS-IS is notified as well.
                    self.lost.insert(*prefix);
                    if self.complained.insert(*prefix) {
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
