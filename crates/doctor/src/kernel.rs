//! The kernel: its version and its configuration.

use crate::finding::Finding;
use std::fs;
use std::io;
use std::path::Path;

const THEME: &str = "Kernel";

/// First version with AF_XDP frames of several buffers, which a path MTU of 4,096 octets requires.
const MULTI_BUFFER: (u32, u32) = (6, 6);
/// First supported version: several AF_XDP sockets with one UMEM, and BPF memory that is not locked.
const OLDEST: (u32, u32) = (5, 11);

/// The findings about the kernel.
pub(crate) fn check() -> Vec<Finding> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut findings = vec![version(release.trim())];
    findings.push(ipv6(fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").ok().as_deref()));
    findings.push(seg6(fs::read_to_string("/proc/sys/net/ipv6/conf/all/seg6_enabled").ok().as_deref()));
    findings.push(match Path::new("/proc/net/ip6_mr_vif").exists() {
        true => Finding::ok(THEME, "ip6mr", "IPv6 multicast routing, for routers of labs"),
        false => Finding::missing(THEME, "ip6mr", "no IPv6 multicast routing, which the lab kernel-transit needs")
            .with_remedy("use a kernel with CONFIG_IPV6_MROUTE=y; Debian's has it"),
    });
    let socket = |domain: i32| socket2::Socket::new(socket2::Domain::from(domain), socket2::Type::RAW, None).map(drop);
    findings.push(packet_socket(socket(AF_PACKET)));
    findings.push(xdp_socket(socket(AF_XDP)));
    findings
}

/// Address families of Linux.
const AF_PACKET: i32 = 17;
const AF_XDP: i32 = 44;

fn version(release: &str) -> Finding {
    match parse_release(release) {
        None => Finding::degraded(THEME, "version", format!("{release:?} is not a Linux version")),
        Some(version) if version < OLDEST => {
            Finding::missing(THEME, "version", format!("{release}, srdma needs 5.11 or later"))
                .needed()
                .with_remedy(UPGRADE)
        }
        Some(version) if version < MULTI_BUFFER => {
            let detail = format!("{release}; AF_XDP carries a path MTU of 4096 from 6.6 on, AF_PACKET does here");
            Finding::degraded(THEME, "version", detail).with_remedy(UPGRADE)
        }
        Some(_) => Finding::ok(THEME, "version", release),
    }
}

const UPGRADE: &str = "apt-get install linux-image-amd64 and restart, from Debian 13 or later";

/// Major and minor number of a release such as `6.12.48+deb13-amd64`.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn ipv6(disabled: Option<&str>) -> Finding {
    match disabled.map(str::trim) {
        Some("0") => Finding::ok(THEME, "IPv6", "enabled").needed(),
        Some(_) => {
            Finding::missing(THEME, "IPv6", "disabled").needed().with_remedy("sysctl net.ipv6.conf.all.disable_ipv6=0")
        }
        None => Finding::missing(THEME, "IPv6", "not in this kernel, or disabled at boot")
            .needed()
            .with_remedy("remove ipv6.disable=1 from the kernel's command line and restart"),
    }
}

fn seg6(enabled: Option<&str>) -> Finding {
    match enabled.map(str::trim) {
        Some("1") => Finding::ok(
            THEME,
            "seg6",
            "the kernel accepts packets with an SRH; required by Linux routers, not by nodes",
        ),
        Some(_) => {
            Finding::ok(THEME, "seg6", "available, disabled outside of labs: not required by nodes, enabled by labs")
        }
        None => Finding::missing(THEME, "seg6", "no SRv6 in this kernel: labs with Linux routers do not run")
            .with_remedy("use a kernel with CONFIG_IPV6_SEG6_LWTUNNEL=y; Debian's has it"),
    }
}

fn packet_socket(socket: io::Result<()>) -> Finding {
    match socket {
        Ok(()) => Finding::ok(THEME, "AF_PACKET", "a socket can be opened").needed(),
        Err(error) => {
            Finding::missing(THEME, "AF_PACKET", format!("no socket: {error}")).needed().with_remedy(PRIVILEGE)
        }
    }
}

fn xdp_socket(socket: io::Result<()>) -> Finding {
    match socket {
        Ok(()) => Finding::ok(THEME, "AF_XDP", "a socket can be opened"),
        Err(error) => {
            let detail = format!("no socket: {error}; nodes use AF_PACKET, and the kernel sees their packets as well");
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            Finding::degraded(THEME, "AF_XDP", detail).with_remedy(if denied { PRIVILEGE } else { UPGRADE })
        }
    }
}

const PRIVILEGE: &str = "run as root, or setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep srdma";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;

    #[test]
    fn releases_are_parsed() {
        assert_eq!(parse_release("6.12.48+deb13-amd64"), Some((6, 12)));
        assert_eq!(parse_release("6.18-rc1"), Some((6, 18)));
        assert_eq!([parse_release(""), parse_release("6"), parse_release("x.y")], [None; 3]);
    }

    #[test]
    fn versions_are_checked() {
        let state = |release| (version(release).state, version(release).stops_a_node());
        assert_eq!(state("4.19.0-27-amd64"), (State::Missing, true));
        assert_eq!(state("6.1.0-40-amd64"), (State::Degraded, false));
        assert_eq!(state("6.6.0"), (State::Ok, false));
        assert_eq!(state("unknown"), (State::Degraded, false));
    }

    #[test]
    fn settings_are_checked() {
        assert_eq!([Some("0\n"), Some("1\n"), None].map(|text| ipv6(text).stops_a_node()), [false, true, true]);
        assert_eq!(
            [Some("1\n"), Some("0\n"), None].map(|text| seg6(text).state),
            [State::Ok, State::Ok, State::Missing]
        );
        assert!(packet_socket(Err(io::Error::from_raw_os_error(1))).stops_a_node());
        assert_eq!(xdp_socket(Err(io::Error::from_raw_os_error(97))).state, State::Degraded);
    }
}
