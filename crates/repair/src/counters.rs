//! Counters of repair, apart from those of the data that are forwarded.

use std::ops::AddAssign;

macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)*) => {
        /// Counters of a group at one node.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Counters {
            $($(#[$doc])+ pub $name: u64,)*
        }

        impl Counters {
            /// The counters with their names, as metrics and JSON write them.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Counters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Packets sent again to a branch.
    packets_resent,
    /// NAKs of branches that were answered by sending again, and did not go upstream.
    naks_absorbed,
    /// NAKs of branches that repeated one whose data were on their way.
    naks_suppressed,
    /// RNR NAKs that did not go upstream.
    rnr_naks_absorbed,
    /// Gaps in the received PSNs.
    gaps,
    /// Requests sent to the parent.
    requests_sent,
    /// Requests of children.
    requests_received,
    /// NAKs of the minimum sent upstream for a gap or a packet that is not in the buffer.
    naks_for_gaps,
    /// Gaps that were given up: no node above has the data.
    gaps_given_up,
    /// Packets that were received again, and not forwarded.
    duplicates_absorbed,
    /// Probes of branches that were silent.
    probes,
    /// How often the source had more in flight than its window: the group went on without repair.
    windows_exceeded,
    /// Packets in the buffer that proved damaged when they were to be sent again.
    damaged,
}

/// Counters of a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BranchCounters {
    /// Packets sent again.
    pub packets_resent: u64,
    /// How often it was taken back: NAKs, probes and ends of RNR waits.
    pub times_back: u64,
}
