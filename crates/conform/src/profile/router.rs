//! A router with the ports `up` and `down`, and perhaps one for frames, for profiles of single packets: what it must
//! send is computed by the slow model of RFC 8754, RFC 8986 and RFC 9800.

use super::{left, sent};
use crate::octets::icmpv6_error;
use crate::parameters::Port;
use crate::{Case, Expected};
use srdma_testkit::forwarding::{Outcome, Route, forward};
use std::net::Ipv6Addr;

/// Where the device's output leaves, and the address from which it reports errors.
pub(super) struct Router {
    pub(super) up: (&'static str, Port),
    pub(super) down: (&'static str, Port),
    /// The port of Ethernet frames in SRv6, if there is one.
    pub(super) frames: Option<&'static str>,
    pub(super) device: Ipv6Addr,
    /// The main table first. Next hops are 0 for `up` and 1 for `down`, and 2 is the port of frames.
    pub(super) tables: Vec<Vec<Route>>,
}

impl Router {
    /// Sends a packet at `up`, and expects what the RFCs' pseudocode makes of it.
    pub(super) fn by_the_rfcs(&self, case: Case, packet: &[u8]) -> Case {
        let case = case.send(sent(self.up, packet));
        match forward(&self.tables, packet) {
            Outcome::Sent(next_hop, octets) => {
                let expected = match (next_hop, self.frames) {
                    (0, _) => left(self.up, &octets),
                    (2, Some(port)) => return case.expect(Expected::exactly(port, octets)),
                    _ => left(self.down, &octets),
                };
                let is_encapsulated = octets.len() > packet.len();
                case.expect(match is_encapsulated {
                    true => expected.free_dscp_and_label(14).free_hop_limit(14),
                    false => expected,
                })
            }
            Outcome::Error(kind, code, parameter, invoking) => {
                let error = icmpv6_error(self.device, kind, code, parameter, &invoking);
                case.expect(left(self.up, &error).icmpv6_error(14))
            }
            Outcome::Dropped => case,
        }
    }
}
