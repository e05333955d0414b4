//! Processor, caches and memory of this machine.

use std::fs;

/// Caches and clock.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Model name of the processor.
    pub model: String,
    /// Octets of the second-level cache of a core.
    pub l2_octets: usize,
    /// Octets of the third-level cache.
    pub l3_octets: usize,
    /// Frequency of the time stamp counter, when the kernel reports it.
    pub tsc_ghz: Option<f64>,
    /// Octets of memory that are free for use.
    pub available_octets: usize,
}

impl Machine {
    /// Reads /proc and /sys; a machine that does not report the sizes of its caches counts as one with 1 MiB and 32
    /// MiB.
    pub fn detect() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let available_kib: Option<usize> =
            value_of(&meminfo, "MemAvailable").and_then(|value| value.split_whitespace().next()?.parse().ok());
        Machine {
            model: value_of(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            l2_octets: cache_octets(2).unwrap_or(1 << 20),
            l3_octets: cache_octets(3).unwrap_or(32 << 20),
            tsc_ghz: tsc_ghz(&cpuinfo),
            available_octets: available_kib.map_or(4 << 30, |kib| kib << 10),
        }
    }

    /// Nanoseconds as clocks of the time stamp counter.
    pub fn clocks(&self, ns: f64) -> Option<f64> {
        self.tsc_ghz.map(|ghz| ns * ghz)
    }
}

/// Linux takes its delay loop's speed from the time stamp counter where that runs at a constant rate, and states it as
/// twice the counter's megahertz.
fn tsc_ghz(cpuinfo: &str) -> Option<f64> {
    let flags = value_of(cpuinfo, "flags")?;
    let bogomips: f64 = value_of(cpuinfo, "bogomips")?.parse().ok()?;
    flags.split(' ').any(|flag| flag == "constant_tsc").then_some(bogomips / 2.0 / 1000.0)
}

fn value_of<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

fn cache_octets(level: u32) -> Option<usize> {
    let directory = "/sys/devices/system/cpu/cpu0/cache";
    let read = |index: u32, name: &str| fs::read_to_string(format!("{directory}/index{index}/{name}")).ok();
    let index = (0..8).find(|index| read(*index, "level").is_some_and(|text| text.trim().parse() == Ok(level)))?;
    let size = read(index, "size")?;
    let kib: usize = size.trim().strip_suffix('K')?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_runs_at_half_the_bogomips() {
        let cpuinfo = "model name\t: Some CPU\nflags\t\t: fpu constant_tsc\nbogomips\t: 5199.99\n";
        assert_eq!(tsc_ghz(cpuinfo), Some(5199.99 / 2000.0));
        assert_eq!(tsc_ghz("flags : fpu\nbogomips : 5199.99\n"), None);
        assert_eq!(value_of(cpuinfo, "model name"), Some("Some CPU"));
    }
}
