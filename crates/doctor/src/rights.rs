//! Capabilities of this process.

use crate::finding::Finding;
use std::fs;

const THEME: &str = "Rights of this process";

/// A capability: bit, name, use by a node, and whether a node requires it.
const CAPABILITIES: [(u32, &str, &str, bool); 4] = [
    (12, "CAP_NET_ADMIN", "attaches to interfaces, installs routes and neighbours", true),
    (13, "CAP_NET_RAW", "opens packet and ICMPv6 sockets", true),
    (39, "CAP_BPF", "loads the program of AF_XDP; without it AF_PACKET carries the frames", false),
    (14, "CAP_IPC_LOCK", "locks the memory of AF_XDP beyond the limit", false),
];

const REMEDY: &str =
    "run as root, or setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep srdma, or the systemd unit";

/// The findings about rights.
pub(crate) fn check() -> Vec<Finding> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut findings = capabilities(&status);
    findings.push(bpf(fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled").ok().as_deref(), &status));
    findings
}

/// Whether this process may lock memory without limit.
pub(crate) fn may_lock_memory() -> bool {
    const CAP_IPC_LOCK: u32 = 14;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective(&status).is_some_and(|effective| effective >> CAP_IPC_LOCK & 1 == 1)
}

fn capabilities(status: &str) -> Vec<Finding> {
    let effective = effective(status).unwrap_or(0);
    let finding = |(bit, name, purpose, is_needed): (u32, &str, &str, bool)| {
        let finding = match (effective >> bit & 1, is_needed) {
            (1, _) => Finding::ok(THEME, name, purpose),
            (_, true) => Finding::missing(THEME, name, format!("not effective: {purpose}")).with_remedy(REMEDY),
            (_, false) => Finding::degraded(THEME, name, format!("not effective: {purpose}")).with_remedy(REMEDY),
        };
        if is_needed { finding.needed() } else { finding }
    };
    CAPABILITIES.map(finding).to_vec()
}

/// The effective capabilities in the text of /proc/self/status.
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn bpf(disabled: Option<&str>, status: &str) -> Finding {
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_BPF: u32 = 39;
    let effective = effective(status).unwrap_or(0);
    let is_allowed = (effective >> CAP_BPF | effective >> CAP_SYS_ADMIN) & 1 == 1;
    match (disabled.map(str::trim), is_allowed) {
        (None, _) => Finding::degraded(THEME, "bpf()", "this kernel has no BPF; nodes use AF_PACKET")
            .with_remedy("use a kernel with CONFIG_BPF_SYSCALL=y; Debian's has it"),
        (Some(setting), true) => {
            Finding::ok(THEME, "bpf()", format!("allowed (kernel.unprivileged_bpf_disabled is {setting})"))
        }
        (Some(setting), false) => {
            let detail = format!("not permitted (kernel.unprivileged_bpf_disabled is {setting}); nodes use AF_PACKET");
            Finding::degraded(THEME, "bpf()", detail).with_remedy(REMEDY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;

    const ROOT: &str =
        "Name:\tsrdma\nCapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n";
    const USER: &str = "Name:\tsrdma\nCapEff:\t0000000000000000\n";
    const RAW_ONLY: &str = "CapEff:\t0000000000002000\n";

    #[test]
    fn capabilities_are_read_and_checked() {
        let states = |status| capabilities(status).iter().map(|finding| finding.state).collect::<Vec<_>>();
        assert_eq!(states(ROOT), [State::Ok; 4]);
        assert_eq!(states(USER), [State::Missing, State::Missing, State::Degraded, State::Degraded]);
        assert_eq!(states(RAW_ONLY)[..2], [State::Missing, State::Ok]);
        assert_eq!(states("no such line"), states(USER));
    }

    #[test]
    fn only_required_capabilities_stop_a_node() {
        let stopping = capabilities(USER).iter().filter(|finding| finding.stops_a_node()).count();
        assert_eq!(stopping, 2);
    }

    #[test]
    fn bpf_is_checked() {
        assert_eq!(bpf(Some("2\n"), ROOT).state, State::Ok);
        assert_eq!(bpf(Some("2\n"), USER).state, State::Degraded);
        assert_eq!(bpf(None, ROOT).state, State::Degraded);
    }
}
