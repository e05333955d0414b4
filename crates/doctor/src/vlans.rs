//! Whether drivers see the VLAN tags of received frames.

use crate::finding::Finding;
use std::io;

const THEME: &str = "VLANs";

/// For a port with VLANs on its link: `takes_off` is what the interface does with tags.
pub(crate) fn finding(interface: &str, uses_af_xdp: bool, takes_off: io::Result<bool>) -> Finding {
    let remedy = format!("ethtool -K {interface} rxvlan off");
    match (takes_off, uses_af_xdp) {
        (Ok(true), true) => {
            let detail = "takes VLAN tags off received frames (rxvlan): AF_XDP does not see them, and tagged frames \
                          come to the parent's port";
            Finding::degraded(THEME, interface, detail).with_remedy(remedy)
        }
        (Ok(true), false) => {
            let detail =
                format!("takes VLAN tags off received frames (rxvlan), which AF_PACKET sees; for AF_XDP: {remedy}");
            Finding::info(THEME, interface, detail)
        }
        (Ok(false), _) => Finding::ok(THEME, interface, "leaves VLAN tags in received frames"),
        (Err(error), true) => {
            let detail = format!("it is unknown whether AF_XDP sees VLAN tags: {error}");
            Finding::degraded(THEME, interface, detail).with_remedy(remedy)
        }
        (Err(error), false) => Finding::info(THEME, interface, format!("AF_PACKET sees VLAN tags; rxvlan: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;

    #[test]
    fn af_xdp_needs_the_tags_in_the_frames() {
        let unknown = || io::Error::from_raw_os_error(95);
        let states = [
            (Ok(true), true, State::Degraded),
            (Ok(true), false, State::Info),
            (Ok(false), true, State::Ok),
            (Ok(false), false, State::Ok),
            (Err(unknown()), true, State::Degraded),
            (Err(unknown()), false, State::Info),
        ];
        for (takes_off, uses_af_xdp, state) in states {
            let finding = finding("eth1", uses_af_xdp, takes_off);
            assert_eq!((finding.name.as_str(), finding.state), ("eth1", state));
            let remedy = (state == State::Degraded).then(|| "ethtool -K eth1 rxvlan off".to_owned());
            assert_eq!(finding.remedy, remedy);
        }
    }
}
