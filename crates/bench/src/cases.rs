//! Cases of the measurements.

/// Requests the smallest frame of a case: 128 octets, or 192 where it arrives encapsulated.
pub(super) const SMALL: usize = 0;

/// Processing of a packet at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// IPv6 forwarding.
    Ipv6,
    /// End, one segment left.
    End,
    /// End.X, one segment left.
    EndX,
    /// uN: NEXT-CSID shift, then the FIB.
    MicroN,
    /// uA: NEXT-CSID shift, then the adjacency.
    MicroA,
    /// End.DT6 behind an SRH without segments left.
    EndDt6,
    /// H.Encaps with two segments.
    Encaps,
    /// H.Encaps.Red with two segments.
    EncapsReduced,
    /// End.Replicate to so many downstream nodes.
    Replicate(usize),
    /// End.MT for so many receivers.
    EndMt(usize),
}

/// End of the timed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Finished frames wait in output queues. A driver that can gather sends their pieces from where they are.
    Queued,
    /// All pieces of each frame have been copied into an output buffer, and the frame released.
    Copied,
}

/// Memory that a repetition touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkingSet {
    /// A quarter of the second-level cache.
    InsideL2,
    /// Four times the third-level cache.
    Memory,
}

impl WorkingSet {
    /// As the table and JSON write it.
    pub(super) fn name(self) -> &'static str {
        match self {
            WorkingSet::InsideL2 => "inside L2",
            WorkingSet::Memory => "4 x L3",
        }
    }
}

/// A case: a row for each frame length, number of routes and working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) work: Work,
    pub(super) until: Until,
}

impl Case {
    /// All cases, in the order of the table.
    pub(super) fn all() -> impl Iterator<Item = Case> {
        use Work::{Encaps, EncapsReduced, End, EndDt6, EndMt, EndX, Ipv6, MicroA, MicroN, Replicate};
        let queued = [Ipv6, End, EndX, MicroN, MicroA, EndDt6, Encaps, EncapsReduced, Replicate(8)];
        let multicast = [EndMt(1), EndMt(8), EndMt(11), EndMt(64)];
        let gathered = queued.into_iter().chain(multicast).map(|work| Case { work, until: Until::Queued });
        gathered.chain(multicast.map(|work| Case { work, until: Until::Copied }))
    }

    /// As the table and JSON write it.
    pub(super) fn name(self) -> String {
        let how = match self.until {
            Until::Queued => "gathered",
            Until::Copied => "copied",
        };
        match self.work {
            Work::Ipv6 => "IPv6".to_owned(),
            Work::End => "End".to_owned(),
            Work::EndX => "End.X".to_owned(),
            Work::MicroN => "uN".to_owned(),
            Work::MicroA => "uA".to_owned(),
            Work::EndDt6 => "End.DT6".to_owned(),
            Work::Encaps => "H.Encaps".to_owned(),
            Work::EncapsReduced => "H.Encaps.Red".to_owned(),
            Work::Replicate(copies) => format!("End.Replicate x{copies}"),
            Work::EndMt(copies) => format!("End.MT x{copies} {how}"),
        }
    }

    /// Frames that leave for each that comes in.
    pub(super) fn copies(self) -> usize {
        match self.work {
            Work::Replicate(copies) | Work::EndMt(copies) => copies,
            _ => 1,
        }
    }
}
