//! Size of a node's state of a group's responses (MT-8-1).
//!
//! ```text
//!                               a group     a branch
//!   Acknowledgements                 32           24      point 8, what is pending there and since when 16
//!   the watch over stalls            16            4      clock and sendings; only at edges under `evict` (D25)
//!   CnpWindow                        16            4      CCount, CNPs taken
//!                               -------     --------
//!                                    64           32
//! ```
//!
//! Where the policy has a time for receivers that are not ready (D196), the watch has another 8 octets for each branch.
//! Besides: the identities of the branches, the rules, and counters for diagnosis. It grows with branches, never with
//! the receivers below them.

use crate::acknowledgements::Acknowledgements;
use crate::cnp::CnpWindow;
use crate::stall::StallWatch;

/// Octets of state that a group takes at a node.
pub const STATE_OCTETS_PER_GROUP: usize =
    Acknowledgements::OCTETS_PER_GROUP + StallWatch::OCTETS_PER_GROUP + CnpWindow::OCTETS_PER_GROUP;

/// Octets of state that each branch of a group takes.
pub const STATE_OCTETS_PER_BRANCH: usize =
    Acknowledgements::OCTETS_PER_BRANCH + StallWatch::OCTETS_PER_BRANCH + CnpWindow::OCTETS_PER_BRANCH;

const _: () = assert!(STATE_OCTETS_PER_GROUP <= 64 && STATE_OCTETS_PER_BRANCH <= 32);
