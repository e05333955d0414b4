//! The kernel's own forwarding and SRv6, which `srdma bench wire` measures on the same links.

use super::ours::Srdma;
use super::row::{Figures, Missing, Outcome, Row};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;

const INSTALL: &str = "  apt-get install iproute2 ethtool
  sudo cargo xtask peers --only kernel   # two processors, a kernel with CONFIG_IPV6_SEG6_LWTUNNEL";

pub(super) fn measure(srdma: &Srdma) -> Result<Outcome> {
    // Of the files of a process those of its own number are the user's.
    let is_root = fs::read_to_string("/proc/self/status").is_ok_and(|status| is_root(&status));
    if !is_root {
        let why = "namespaces and links need root".to_owned();
        return Ok(Outcome::Missing(Missing { peer: "Linux", why, install: INSTALL }));
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rows = rows(&srdma.rows(&["bench", "wire", "--json"], false)?, release.trim())?;
    if rows.is_empty() {
        let why = "`srdma bench wire` has no row of the kernel, as said above".to_owned();
        return Ok(Outcome::Missing(Missing { peer: "Linux", why, install: INSTALL }));
    }
    Ok(Outcome::Measured(rows))
}

fn is_root(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// The rows whose yardstick is the kernel.
fn rows(measured: &[Value], release: &str) -> Result<Vec<Row>> {
    let of_kernel =
        measured.iter().filter(|row| row["yardstick"].as_str().is_some_and(|name| name.starts_with("kernel")));
    of_kernel
        .map(|row| {
            let figures = |value: &Value| -> Result<Figures> {
                let number = |key: &str| value[key].as_f64().with_context(|| format!("a row without {key}: {row}"));
                Ok(Figures { least: number("ns_min")?, median: number("ns_median")? })
            };
            let text = |key: &str| row[key].as_str().with_context(|| format!("a row without {key}: {row}"));
            Ok(Row {
                peer: format!("Linux {release}"),
                case: format!("{} {} {}", text("driver")?, text("case")?, row["frame_octets"]),
                unit: "ns",
                ours: figures(row)?,
                theirs: figures(&row["yardstick_ns"])?,
                rounds: row["repetitions"].as_u64().unwrap_or(0),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_of_the_kernel_are_those_with_its_yardstick() {
        let row = |yardstick: &str| {
            json!({
                "driver": "AF_PACKET", "case": "End in all", "frame_octets": 118, "ns_min": 2000.0, "ns_median": 2100.0,
                "yardstick": yardstick, "yardstick_ns": { "ns_min": 1000.0, "ns_median": 1050.0 }, "repetitions": 7,
            })
        };
        let rows = rows(&[row("bare reflector"), row("kernel")], "6.18.1").unwrap();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].to_string().starts_with("Linux 6.18.1"));
        assert_eq!(rows[0].json()["theirs_through_ours"]["median"], 0.5);
        assert!(super::rows(&[json!({ "yardstick": "kernel" })], "").is_err());
    }

    #[test]
    fn root_is_the_effective_user() {
        assert!(is_root("Name:\tx\nUid:\t1000\t0\t0\t0\n"));
        assert!(!is_root("Uid:\t0\t1000\t0\t0\n"));
    }
}
