//! Traces of paths that nodes send each other upstream (D242): CNPs that stand for none, with the load of the path and
//! the trace in the option of a Fast CNP.

use super::Groups;
use super::responses::FromBelow;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::fast_cnp::{drop_of, has_option};
use crate::security::Security;
use crate::tables::Tables;
use srdma_aggregation::BranchIndex;
use srdma_frame::{Frame, Pool};
use srdma_wire::fast_cnp::{FastCnp, MAX_TRACE_LEN, OptionTypes};
use srdma_wire::rocev2::Extended;

/// The trace of a path, and its load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathTrace {
    pub(crate) load: u32,
    len: usize,
    octets: [u8; MAX_TRACE_LEN],
}

impl PathTrace {
    /// A trace, which a Fast CNP can carry.
    pub(crate) fn new(load: u32, trace: &[u8]) -> Option<Self> {
        let mut octets = [0; MAX_TRACE_LEN];
        octets.get_mut(..trace.len())?.copy_from_slice(trace);
        Some(PathTrace { load, len: trace.len(), octets })
    }

    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    pub(crate) fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.octets[..self.len]
    }
}

impl Groups {
    /// The trace that a node below has sent, with its branch; `None` for any other packet.
    pub(crate) fn path_trace(
        &self,
        context: &PacketContext,
        frame: &Frame,
        pool: &Pool,
        group: u32,
        types: OptionTypes,
        (tables, security): (&Tables, &Security),
    ) -> Option<Result<(BranchIndex, PathTrace), DropReason>> {
        let has_nodes_below = self.get(group).is_some_and(|state| state.entry.nodes_below() > 0);
        if !has_nodes_below || !has_option(frame.head(pool), types) {
            return None;
        }
        let FromBelow { branch, is_node, packet } =
            match self.check_response(context, frame, pool, group, tables, security) {
                Ok(checked) => checked,
                Err(reason) => return Some(Err(reason)),
            };
        // One that stands for some, or comes from a receiver, is a CNP, whatever its options.
        let Extended::Cnp(cnp) = packet.extended else { return None };
        if cnp.count() > 0 || !is_node {
            return None;
        }
        let found = FastCnp::find(&packet, types).map_err(drop_of);
        let proxy = self.get(group).map(|state| state.entry.proxy);
        let of_group = |found: Option<FastCnp<'_>>| {
            let found = found.filter(|fast_cnp| Some(fast_cnp.original_destination) == proxy);
            let trace = found.and_then(|fast_cnp| PathTrace::new(cnp.load(), fast_cnp.trace?));
            Ok((branch, trace.ok_or(DropReason::UnexpectedResponder)?))
        };
        Some(found.and_then(of_group))
    }
}
