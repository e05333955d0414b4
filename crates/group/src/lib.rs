//! The multicast group as a value: its record, its tree, and the group entry of each node.
//!
//! A [`Group`] is what a control plane commits: source, receivers, tree and policy. [`Group::new`] rejects an
//! invalid record, so that later code need not check it. [`Group::at`] is the group entry of a node.

mod conflicts;
mod document;
mod group;
mod group_entry;
mod lifecycle;
mod lists;
mod name;
mod policy;
mod psn_offset;
mod safeguard;
mod tree;

pub use conflicts::{ConflictError, check_conflicts};
pub use group::{
    Group, GroupError, GroupId, Join, MAX_REGIONS, Receiver, Record, Source, SourceRegion, check_regions,
    is_host_address, is_mixed,
};
pub use group_entry::{Branch, Downstream, GroupEntry, HeadendEntry, Parent, RepairEntry};
pub use lifecycle::{
    Admission, Ahead, ChangeError, Lifecycle, Move, NewNode, Newcomer, Order, Rehoming, Replacement, Resumption,
};
pub use lists::{EdgeList, Overhead, ReceiverRegion, srh_len_octets};
pub use name::{Digest, DigestError, EntryName, Held};
pub use policy::{CnpMode, Dscp, ListMode, NoDscp, OnFailure, Policy, RepairMode, RepairPolicy, Rules};
pub use psn_offset::PsnOffset;
pub use safeguard::Safeguard;
pub use tree::{NodeIndex, NodeRole, Tree, TreeError, TreeNode};
