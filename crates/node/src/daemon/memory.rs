//! Memory of a data thread's pool: for frames that wait, for those that drivers keep ready for the kernel, and for
//! retransmission buffers (D162).

use crate::Configuration;
use std::fs;

/// Pages for frames that wait to be sent, and for those that drivers keep ready for the kernel.
const PAGES: usize = 8192;
const PAGES_PER_PORT: usize = 4096;
const PAGE: u64 = 4096;

/// The least part of the machine's memory that is left to others.
const MACHINE_SHARE: u64 = 16;

/// Pages of the pool of a node with so many ports, whose buffers take this much.
pub(super) fn pages(ports: usize, buffer_octets: u64) -> usize {
    // A pool has one page in four for small chunks, and one in 65 of the others is left over.
    let buffers = buffer_octets.div_ceil(PAGE) * 4 / 3 * 65 / 64;
    PAGES + PAGES_PER_PORT * ports + usize::try_from(buffers).unwrap_or(usize::MAX / 2)
}

/// Octets that retransmission buffers may take of this machine: nothing at a node that has no group and is given none.
pub(super) fn buffer_octets(configuration: &Configuration) -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let has_groups = configuration.controller.is_some() || !configuration.spec.entries.groups.is_empty();
    if has_groups { bounded(configuration.spec.node.repair_memory_octets, &meminfo) } else { 0 }
}

/// At most one part of the machine's memory.
fn bounded(octets: u64, meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map_or(octets, |kibibytes| octets.min(kibibytes * 1024 / MACHINE_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_io::Umem;
    use std::path::Path;

    const GIB: u64 = 1 << 30;

    #[test]
    fn buffers_take_at_most_a_part_of_the_machine() {
        let meminfo = |gib: u64| format!("MemTotal: {} kB\nMemFree: 1 kB\n", gib * 1024 * 1024);
        assert_eq!([4, 16, 64].map(|gib| bounded(GIB, &meminfo(gib))), [GIB / 4, GIB, GIB]);
        assert_eq!(bounded(GIB, ""), GIB);
    }

    #[test]
    fn a_node_without_groups_has_no_buffers() {
        let text = "[node]\nloopback = '2001:db8::1'\nrepair_memory_octets = 4_096\n";
        let configuration = Configuration::parse(Path::new("node.toml"), text).expect("a node");
        assert_eq!(buffer_octets(&configuration), 0);
    }

    /// What the buffers may take is there beside what a node without them has.
    #[test]
    fn a_pool_has_room_for_the_buffers() {
        let chunks = |buffer_octets: u64| {
            let (_umem, mut pool) = Umem::new(pages(1, buffer_octets)).expect("memory");
            let large = std::iter::from_fn(|| pool.allocate_large()).count();
            (large as u64, std::iter::from_fn(|| pool.allocate_small()).count() as u64)
        };
        let buffers = 16 << 20;
        let (without, with) = (chunks(0), chunks(buffers));
        let needed = buffers / PAGE;
        assert!(with.0 - without.0 >= needed && with.0 - without.0 <= needed + needed / 8, "{without:?} {with:?}");
        assert!(with.1 - without.1 >= needed, "packets that fit small chunks: {without:?} {with:?}");
    }
}
