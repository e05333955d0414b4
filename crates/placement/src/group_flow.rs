//! What one NIC sends to several by a multicast group: every link of the group's tree carries it once.

use crate::flow::Flow;
use srdma_fabric::HostId;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Octets from one NIC to several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFlow {
    /// The NIC that sends.
    pub from: HostId,
    /// The NICs that receive, each once, and not the one that sends.
    pub to: Vec<HostId>,
    /// Bits in a second that each link of the tree carries.
    pub rate_bits_per_s: u64,
}

/// A group with what it belongs to.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    pub group: GroupFlow,
    pub job: String,
    /// The part of the job that sends it.
    pub part: String,
}

impl GroupFlow {
    /// A group in which NICs that occur several times receive once.
    pub(crate) fn new(from: HostId, to: impl IntoIterator<Item = HostId>, rate_bits_per_s: u64) -> Self {
        let to: BTreeSet<HostId> = to.into_iter().filter(|to| *to != from).collect();
        GroupFlow { from, to: to.into_iter().collect(), rate_bits_per_s }
    }

    /// Flows that cross the links around places as often as any tree at least: out of the place of the sender once, if
    /// receivers are elsewhere, or into each other place with receivers once.
    pub(crate) fn crossing(&self, is_outgoing: bool, place: impl Fn(HostId) -> usize) -> Vec<Flow> {
        let mut places = BTreeSet::from([place(self.from)]);
        let others = self.to.iter().filter(|to| places.insert(place(**to)));
        let flows = others.map(|to| Flow { from: self.from, to: *to, rate_bits_per_s: self.rate_bits_per_s });
        if is_outgoing { flows.take(1).collect() } else { flows.collect() }
    }
}

/// Flows, and those by which [groups cross](GroupFlow::crossing) the links around places.
pub(crate) fn crossing<'a>(
    flows: &'a [Flow],
    groups: &[GroupFlow],
    is_outgoing: bool,
    place: impl Fn(HostId) -> usize,
) -> Cow<'a, [Flow]> {
    if groups.is_empty() {
        return Cow::Borrowed(flows);
    }
    let of_groups = groups.iter().flat_map(|group| group.crossing(is_outgoing, &place));
    flows.iter().copied().chain(of_groups).collect()
}
