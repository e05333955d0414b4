//! Fast CNPs inside a multicast tree (D46).
//!
//! ```text
//! above an edge: the packet's source is the group's source S     → Fast CNP to S: it names S's own connection
//! below an edge: the copy's source is the Proxy Address          → Fast CNP to the edge, which counts a CNP of the
//! branch
//! ```

use crate::drop::DropReason;
use crate::fast_cnp::has_option;
use crate::headers::IPV6;
use crate::node::fast_cnp::drop_of;
use crate::node::{Arrival, Node};
use srdma_aggregation::BranchIndex;
use srdma_frame::{Frame, Pool};
use srdma_wire::Qpn;
use srdma_wire::fast_cnp::FastCnp;
use srdma_wire::rocev2::Packet;

impl Node {
    /// A Fast CNP to a Proxy Address, taken as a CNP of the branch that its option's address names. `None` when the
    /// packet is no Fast CNP, or Fast CNP is off: then it is a response like any other.
    pub(in crate::node) fn fast_cnp_response(
        &mut self,
        arrival: Arrival,
        frame: &Frame,
        pool: &mut Pool,
        group: u32,
    ) -> Option<Result<(), DropReason>> {
        let head = frame.head(pool);
        self.fast_cnp.as_ref().filter(|_| has_option(head, self.config.fast_cnp_types))?;
        let branch = self.branch_of_fast_cnp(arrival, frame, pool, group);
        Some(branch.and_then(|branch| {
            self.count_fast_cnp(|counters| counters.aggregated += 1);
            self.congestion(arrival.now, group, branch, 1, pool)
        }))
    }

    fn branch_of_fast_cnp(
        &self,
        arrival: Arrival,
        frame: &Frame,
        pool: &Pool,
        group: u32,
    ) -> Result<BranchIndex, DropReason> {
        let octets = frame.head(pool).get(IPV6..).unwrap_or(&[]);
        let packet = Packet::parse(octets, frame.len() - IPV6).map_err(|_| DropReason::NotRocev2)?;
        let found = FastCnp::find(&packet, self.config.fast_cnp_types).map_err(drop_of)?;
        let fast_cnp = found.ok_or(DropReason::NotRocev2)?;
        let source = packet.ipv6.source();
        let came_right = match arrival.decapsulated {
            true => self.outer_source == source.octets(),
            false => self.may_come_from(arrival, &source.octets()),
        };
        let is_believed = self.fast_cnp.as_ref().is_some_and(|notifier| notifier.believes(source, &fast_cnp));
        if !came_right || !is_believed {
            return Err(DropReason::FastCnpForeignSource);
        }
        if fast_cnp.only_returns_trace(source) {
            return Err(DropReason::FastCnpReturnedTrace);
        }
        let receiver = fast_cnp.original_destination.octets();
        let branch = self.branch_of_copy(group, &receiver, packet.bth.dest_qpn());
        let branch = branch.ok_or(DropReason::UnexpectedResponder)?;
        let further = frame.body().iter().map(|segment| segment.octets(pool)).chain([frame.tail()]);
        let check = packet.icrc(further).map_err(|_| DropReason::Truncated)?;
        if check.is_good() { Ok(branch) } else { Err(DropReason::BadIcrc) }
    }

    /// The branch that a copy to this receiver and queue pair belongs to, at an edge.
    pub(super) fn branch_of_copy(&self, group: u32, receiver: &[u8; 16], qpn: Qpn) -> Option<BranchIndex> {
        let state = self.groups[group as usize].as_ref()?;
        let branch = state.branch_of(receiver)?;
        let listed = state.entry.receivers.get(branch.index())?;
        (listed.qpn == qpn).then_some(branch)
    }
}
