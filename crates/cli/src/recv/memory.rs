//! Memory that a receiver may use: a part of what its machine, or its control group, has free.

use std::fs;
use std::path::{Path, PathBuf};

/// The most that is used.
const MOST_OCTETS: u64 = 1 << 30;

/// A quarter of the memory that is free for this process.
pub(super) fn octets_to_use() -> usize {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let read = |path: &Path| fs::read_to_string(path).ok();
    let free = available(&meminfo).into_iter().chain(group_limits(&groups, &read)).min();
    free.map_or(MOST_OCTETS, |free| (free / 4).min(MOST_OCTETS)) as usize
}

/// Free memory of the machine.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The limits of the control groups of a process, from its line in `/proc/self/cgroup` up to the root: those of version
/// 2, `0::/path`, and those of version 1, `N:memory:/path`. In a container the paths may be those of its host; then the
/// limit is at the root.
fn group_limits(groups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = PathBuf::from(root).join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|place| place.starts_with(root));
        // Without a limit the file says `max`, or in version 1 a number of octets that no machine has.
        limits.extend(above.filter_map(|place| read(&place.join(file))?.trim().parse::<u64>().ok()));
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(groups: &str, files: &[(&str, &str)]) -> Vec<u64> {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        group_limits(groups, &read)
    }

    #[test]
    fn limits_are_those_of_the_group_and_of_all_above() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "209715200\n"),
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "100000\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(limits("0::/a/b\n", &files), [209_715_200]);
        assert_eq!(limits("5:cpu:/job\n4:memory:/job\n0::/\n", &files), [100_000, 9_223_372_036_854_771_712]);
        assert_eq!(limits("4:hugetlb,memory:/job\n", &files).len(), 2);
        assert_eq!(limits("0::/../outside\nno line", &files), [0; 0]);
    }

    #[test]
    fn free_memory_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert!(octets_to_use() > 0);
    }
}
