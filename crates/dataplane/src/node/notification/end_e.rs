//! END.E: a Fast CNP for a sender before the WAN (CN-4.2-1), and the way there (CN-4.2-2).

use crate::behavior::{Verdict, end_dt6};
use crate::config::{SidBehavior, TableId};
use crate::drop::DropReason;
use crate::headers::ipv6;
use crate::node::Node;
use crate::node::notification::end_c::drop_of;
use crate::node::state::Target;
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;

impl Node {
    /// The packet is taken out of its outer headers, with or without an SRH; the caller looks it up in the SID's table.
    /// A host that does not know Fast CNP gets a standard CNP (D64).
    #[inline(never)]
    pub(in crate::node) fn end_e(
        &mut self,
        now: Instant,
        outer_source: &[u8; 16],
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Verdict {
        if let Some(origins) = self.end_e_origins.as_mut()
            && let Err(refusal) = origins.take(now, outer_source)
        {
            return Verdict::Drop(drop_of(refusal));
        }
        match end_dt6(frame, pool) {
            Verdict::Inner => self.translate(frame, pool).map_or_else(Verdict::Drop, |()| Verdict::Inner),
            verdict @ (Verdict::Forward | Verdict::Drop(_) | Verdict::Report(..)) => verdict,
        }
    }

    /// The adjacency by which a Fast CNP of the node's own leaves to an END.E, in an outer header. Where the END.E is
    /// the node's own, it is what came out of it already.
    pub(in crate::node) fn way_by_end_e(
        &mut self,
        place: u32,
        frame: &mut Frame,
        pool: &mut Pool,
    ) -> Result<u32, DropReason> {
        let outer = self.notification_sids.end_e(place).ok_or(DropReason::NoRoute)?;
        let own = match self.main.lookup(&outer.sid) {
            Some(Target::Sid(sid)) => Some(self.sids[sid as usize].behavior),
            _ => None,
        };
        match own {
            None => {
                outer.around.push(frame, pool)?;
                self.way_of(frame, pool)
            }
            Some(SidBehavior::EndE(table)) => {
                self.translate(frame, pool)?;
                self.way_within(table, frame, pool)
            }
            Some(_) => Err(DropReason::NoRoute),
        }
    }

    /// The adjacency that a packet of the node's own leaves by as one of a table says.
    fn way_within(&self, table: TableId, frame: &Frame, pool: &Pool) -> Result<u32, DropReason> {
        let view = ipv6(frame.head(pool))?;
        let (source, destination) = (view.source_octets(), view.destination_octets());
        let target = match table {
            TableId(0) => self.main.lookup(destination),
            table => self.tables.get(&table).and_then(|table| table.lookup(destination)),
        };
        target.and_then(|target| self.toward(target, destination, source)).ok_or(DropReason::NoRoute)
    }
}
