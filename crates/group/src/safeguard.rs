//! Safeguards of the control plane, which tests disable one at a time to show that they find what each prevents.

/// A safeguard. All are in effect in the product: no configuration names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Safeguard {
    /// A change in which a lost node gains a member waits for it (D97).
    LostNodesAwaited,
    /// Entries are compared by store and digest, not by epoch alone (D97, D98).
    EntriesNamed,
    /// A node that registers with an older entry has it replaced (D97).
    OldEntriesReplaced,
    /// An edge drops data for receivers outside its record (D96).
    ListsInRecord,
    /// A node that has not registered since the controller's start is lost after some time.
    SilentSinceStart,
    /// Receivers below a dead edge are evicted (D99).
    DeadEdgesEvicted,
    /// Joins and re-homings compute the link MTU of the tree again.
    LinkMtuRenewed,
    /// Nodes whose entry is replaced are renewed at their parents (D136).
    NodesRenewed,
    /// A newcomer that is reserved joins when it is ready, and not before (D187).
    ReadinessAwaited,
    /// A reservation of a newcomer that is not ready in time expires (D188).
    ReservationsExpire,
    /// A former headend ends before any node commits the change that replaces it (D289).
    HeadendFenced,
}

impl Safeguard {
    /// All safeguards.
    pub const ALL: [Safeguard; 11] = [
        Safeguard::LostNodesAwaited,
        Safeguard::EntriesNamed,
        Safeguard::OldEntriesReplaced,
        Safeguard::ListsInRecord,
        Safeguard::SilentSinceStart,
        Safeguard::DeadEdgesEvicted,
        Safeguard::LinkMtuRenewed,
        Safeguard::NodesRenewed,
        Safeguard::ReadinessAwaited,
        Safeguard::ReservationsExpire,
        Safeguard::HeadendFenced,
    ];
}
