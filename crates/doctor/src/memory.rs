//! Memory and processors.

use crate::finding::Finding;
use crate::rights;
use std::fs;
use std::path::Path;
use std::thread;

const THEME: &str = "Memory and processors";

/// Octets of the UMEM of a data thread; the limit should be higher.
const WANTED_LOCKED_OCTETS: u64 = 256 << 20;

/// The findings about memory and processors.
pub(crate) fn check() -> Vec<Finding> {
    let may_lock = rights::may_lock_memory();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    vec![
        locked(&fs::read_to_string("/proc/self/limits").unwrap_or_default(), may_lock),
        huge_pages(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        match processors {
            1 => Finding::degraded(THEME, "processors", "1: shared by the data threads and everything else"),
            more => {
                Finding::ok(THEME, "processors", format!("{more}; `workers` in [daemon] is the number of data threads"))
            }
        },
        match Path::new("/dev/kvm").exists() {
            true => Finding::info(THEME, "KVM", "/dev/kvm exists; labs use emulation"),
            false => Finding::info(THEME, "KVM", "no /dev/kvm; labs use emulation"),
        },
    ]
}

fn locked(limits: &str, may_lock: bool) -> Finding {
    const REMEDY: &str = "ulimit -l unlimited, or LimitMEMLOCK=infinity in the systemd unit, or CAP_IPC_LOCK";
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    match line.and_then(|line| line.split_whitespace().next()) {
        None => Finding::degraded(THEME, "locked memory", "unknown limit").with_remedy(REMEDY),
        Some(_) if may_lock => Finding::ok(THEME, "locked memory", "unlimited by CAP_IPC_LOCK"),
        Some("unlimited") => Finding::ok(THEME, "locked memory", "unlimited"),
        Some(limit) => match limit.parse::<u64>() {
            Ok(octets) if octets >= WANTED_LOCKED_OCTETS => {
                Finding::ok(THEME, "locked memory", format!("up to {} MiB", octets >> 20))
            }
            Ok(octets) => {
                let detail = format!("up to {} MiB: too little for AF_XDP without CAP_IPC_LOCK", octets >> 20);
                Finding::degraded(THEME, "locked memory", detail).with_remedy(REMEDY)
            }
            Err(_) => Finding::degraded(THEME, "locked memory", format!("the limit {limit:?} is not a number"))
                .with_remedy(REMEDY),
        },
    }
}

fn huge_pages(meminfo: &str) -> Finding {
    let value = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    match (value("HugePages_Total"), value("HugePages_Free"), value("Hugepagesize")) {
        (Some(total), Some(free), Some(size_kib)) if total > 0 => Finding::info(
            THEME,
            "huge pages",
            format!("{free} of {total} free, {size_kib} KiB each; not required by nodes"),
        ),
        _ => Finding::info(THEME, "huge pages", "none; not required by nodes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;

    fn limits(value: &str) -> String {
        format!(
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max open files            20000                20000                files     \n\
             Max locked memory         {value:<20} {value:<20} bytes     \n"
        )
    }

    #[test]
    fn limits_are_read_and_checked() {
        let state = |value| locked(&limits(value), false).state;
        assert_eq!(
            ["unlimited", "1073741824", "8388608", "x"].map(state)[..3],
            [State::Ok, State::Ok, State::Degraded]
        );
        assert_eq!([state("x"), locked("", false).state], [State::Degraded; 2]);
        assert!(locked(&limits("8388608"), false).detail.starts_with("up to 8 MiB"));
        assert_eq!(locked(&limits("8388608"), true).state, State::Ok);
    }

    #[test]
    fn huge_pages_are_counted() {
        let meminfo = |total: u32| {
            format!(
                "MemTotal:  4 kB\nHugePages_Total:     {total}\nHugePages_Free:      3\nHugepagesize:       2048 kB\n"
            )
        };
        assert_eq!(huge_pages(&meminfo(4)).detail, "3 of 4 free, 2048 KiB each; not required by nodes");
        assert_eq!(huge_pages(&meminfo(0)).detail, huge_pages("").detail);
    }
}
