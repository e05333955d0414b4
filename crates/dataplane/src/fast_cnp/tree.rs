//! Fast CNPs inside a multicast tree (D46).
//!
//! ```text
//! above an edge: the packet's source is the group's source S     → Fast CNP to S: it names S's own connection
//! below an edge: the copy's source is the Proxy Address          → Fast CNP to the edge, which counts a CNP of the
//! branch
//! ```

use super::{FastCnp, FirstHop, drop_of, has_option};
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::IPV6;
use srdma_aggregation::BranchIndex;
use srdma_frame::{Frame, Pool};
use srdma_wire::fast_cnp;
use srdma_wire::rocev2::Packet;

impl FastCnp {
    /// The branch that a Fast CNP to a Proxy Address counts for: its option's address names it. `None` when the packet
    /// is no Fast CNP, or Fast CNP is off: then it is a response like any other.
    pub(crate) fn branch_of(
        &mut self,
        context: &PacketContext,
        frame: &Frame,
        pool: &Pool,
        group: u32,
        of: FirstHop<'_>,
    ) -> Option<Result<BranchIndex, DropReason>> {
        let head = frame.head(pool);
        if self.notifier.is_none() || !has_option(head, of.config.fast_cnp_types) {
            return None;
        }
        let branch = self.find_branch(context, frame, pool, group, of);
        if branch.is_ok() {
            self.count(|counters| counters.aggregated += 1);
        }
        Some(branch)
    }

    fn find_branch(
        &self,
        context: &PacketContext,
        frame: &Frame,
        pool: &Pool,
        group: u32,
        of: FirstHop<'_>,
    ) -> Result<BranchIndex, DropReason> {
        let octets = frame.head(pool).get(IPV6..).unwrap_or(&[]);
        let packet = Packet::parse(octets, frame.len() - IPV6).map_err(|_| DropReason::NotRocev2)?;
        let found = fast_cnp::FastCnp::find(&packet, of.config.fast_cnp_types).map_err(drop_of)?;
        let fast_cnp = found.ok_or(DropReason::NotRocev2)?;
        let source = packet.ipv6.source();
        let came_right = match context.outer_source {
            Some(outer_source) => outer_source == source.octets(),
            None => of.security.may_come_from(context, &source.octets(), of.tables),
        };
        let is_accepted = self.notifier.as_ref().is_some_and(|notifier| notifier.accepts(source, &fast_cnp));
        if !came_right || !is_accepted {
            return Err(DropReason::FastCnpForeignSource);
        }
        if fast_cnp.only_returns_trace(source) {
            return Err(DropReason::FastCnpReturnedTrace);
        }
        let receiver = fast_cnp.original_destination.octets();
        let branch = of.groups.branch_of_copy(group, &receiver, packet.bth.dest_qpn());
        let branch = branch.ok_or(DropReason::UnexpectedResponder)?;
        let further = frame.body().iter().map(|segment| segment.octets(pool)).chain([frame.tail()]);
        let check = packet.icrc(further).map_err(|_| DropReason::Truncated)?;
        if check.is_good() { Ok(branch) } else { Err(DropReason::BadIcrc) }
    }
}
