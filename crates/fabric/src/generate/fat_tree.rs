//! Fat trees of two and three tiers.

use super::{Builder, LeafSpine, MAX_K, Speeds, out_of_range, pairs};
use crate::error::TopologyError;
use crate::topology::Topology;

/// A k-ary fat tree: switches of k ports, half of them down and half of them up, except at the top.
///
/// Two tiers are a leaf-spine of k leaves with k/2 hosts each below k/2 spines: k²/2 hosts. Three tiers (Al-Fares,
/// Loukissas and Vahdat, SIGCOMM 2008) are k pods of k/2 edge and k/2 aggregation switches below (k/2)² core switches:
/// k³/4 hosts, 1,024 with k = 16. Aggregation switch j of every pod is joined to the k/2 cores of group j. With equal
/// rates both have full bisection bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// 2 or 3.
    pub tiers: u8,
    /// Ports of a switch: even, 2 to [`MAX_K`].
    pub k: u16,
    /// Pods, 2 to k; k unless it is given. With fewer, ports of cores stay free. Two tiers have none.
    pub pods: Option<u16>,
    /// Rates and delays.
    pub speeds: Speeds,
}

impl FatTree {
    /// The topology.
    ///
    /// # Errors
    ///
    /// A number of tiers or ports that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        if !(2..=MAX_K).contains(&self.k) || !self.k.is_multiple_of(2) {
            return Err(out_of_range("k", format!("k = {}: expected an even number, 2 to {MAX_K}", self.k)));
        }
        let half = self.k / 2;
        if let Some(pods) = self.pods.filter(|pods| self.tiers != 3 || !(2..=self.k).contains(pods)) {
            let problem = format!("pods = {pods}: expected 2 to {}, and three tiers", self.k);
            return Err(out_of_range("pods", problem));
        }
        match self.tiers {
            2 => LeafSpine { leaves: self.k, spines: half, hosts_per_leaf: half, speeds: self.speeds }.topology(),
            3 => self.three_tiers(half),
            tiers => Err(out_of_range("tiers", format!("tiers = {tiers}: expected 2 or 3"))),
        }
    }

    fn three_tiers(&self, half: u16) -> Result<Topology, TopologyError> {
        let pods = self.pods.unwrap_or(self.k);
        let mut builder = Builder::new(self.speeds);
        let of_pod = |pod: u16, index: u16| pod * half + index;
        let (first_aggregation, first_core) = (pods * half, 2 * pods * half);
        for (tier, kind) in [(1, "edge"), (2, "agg")] {
            for (pod, index) in pairs(pods, half) {
                builder.switch(format!("{kind}{}.{}", pod + 1, index + 1), tier, (pod + 1) << 8 | (index + 1));
            }
        }
        for (group, index) in pairs(half, half) {
            builder.switch(format!("core{}.{}", group + 1, index + 1), 3, (group + 1) << 8 | (index + 1));
        }
        for (pod, edge) in pairs(pods, half) {
            for member in 1..=half {
                let number = u32::from(pod + 1) << 24 | u32::from(edge + 1) << 16 | u32::from(member);
                let name = format!("h{}.{}.{member}", pod + 1, edge + 1);
                builder.host(name, number, [(of_pod(pod, edge), member - 1)]);
            }
        }
        for (pod, edge) in pairs(pods, half) {
            for aggregation in 0..half {
                let upper = first_aggregation + of_pod(pod, aggregation);
                builder.uplink((of_pod(pod, edge), half + aggregation), (upper, edge));
            }
        }
        for (pod, aggregation) in pairs(pods, half) {
            for index in 0..half {
                let core = first_core + of_pod(aggregation, index);
                builder.uplink((first_aggregation + of_pod(pod, aggregation), half + index), (core, pod));
            }
        }
        Topology::new(builder.plan)
    }
}
