//! Congestion notifications from a WAN to its ingress PEs (draft-hu-acn-rocev2, D60–D67): from packets to packets and
//! pauses.

mod congested;
mod end_c;
mod hostile;
mod support;
