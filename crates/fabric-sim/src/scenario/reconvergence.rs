//! How long routes take to change after a failure or a repair: a constant, an outage measured in a lab, or BFD.

use super::Whole;
use serde::Deserialize;
use srdma_random::Stream;
use srdma_toml_error::{Problem, read_beside};
use srdma_wire::units::NS_PER_US;
use std::path::Path;

/// A variant's time from a failure or repair to new routes, in place of the constant of the switches. Has one key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconvergence {
    /// A file of measured outages, beside that of the scenario.
    pub measured: Option<String>,
    /// BFD between neighbours.
    pub bfd: Option<Bfd>,
    /// What the file has.
    #[serde(skip)]
    outages: Option<Outages>,
}

/// Sessions of neighbours (RFC 5880).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bfd {
    /// Interval of control packets in microseconds, before jitter.
    pub interval_us: Whole<1000, 10_000_000>,
    /// Intervals without a packet after which the neighbour is down.
    pub multiplier: Whole<2, 255>,
    /// From the detection to new routes, in microseconds.
    pub computing_us: Whole<0, 10_000_000>,
}

/// A file of measured outages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outages {
    /// Where they come from, and what was measured.
    source: String,
    /// The outages in microseconds.
    outage_us: Vec<Whole<0, 10_000_000>>,
}

impl Reconvergence {
    /// Reads the file of measured outages, if it names one.
    ///
    /// # Errors
    ///
    /// Not exactly one key; a file that cannot be read, is wrong, or has no source or no outage.
    pub(super) fn read(&mut self, scenario: &Path) -> Result<(), String> {
        match (&self.measured, &self.bfd) {
            (Some(name), None) => {
                self.outages = Some(Outages::parse(Path::new(name), &read_beside(scenario, name)?)?);
                Ok(())
            }
            (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) | (None, None) => {
                Err("reconvergence: expected one of the keys measured and bfd".to_owned())
            }
        }
    }

    /// Nanoseconds until routes have changed after so many links have failed or were repaired.
    pub(crate) fn draw_ns(&self, random: &mut Stream, links: usize) -> u64 {
        if let Some(bfd) = &self.bfd {
            // New routes are there when the last neighbour has noticed.
            let slowest_ns = (0..links.max(1)).map(|_| bfd.detection_ns(random)).max().unwrap_or(0);
            return slowest_ns + bfd.computing_us.get() * NS_PER_US;
        }
        self.outages.as_ref().map_or(0, |outages| outages.draw_ns(random))
    }
}

impl Bfd {
    /// From a failure to its detection: the detection time, less what has passed of it since the last packet. The gap
    /// between two packets is the interval, less a jitter of up to a quarter (RFC 5880 section 6.8.7).
    fn detection_ns(self, random: &mut Stream) -> u64 {
        let interval_ns = self.interval_us.get() * NS_PER_US;
        let gap_ns = interval_ns - random.below(interval_ns / 4 + 1);
        self.multiplier.get() * interval_ns - random.below(gap_ns)
    }
}

impl Outages {
    fn parse(file: &Path, text: &str) -> Result<Self, String> {
        let parsed: Result<Self, _> = toml::from_str(text);
        let outages = parsed.map_err(|error| Problem::of_toml(&error, text).in_file(file, text).to_string())?;
        if outages.source.trim().is_empty() || outages.outage_us.is_empty() {
            return Err(format!("{}: expected a source, and at least one outage", file.display()));
        }
        Ok(outages)
    }

    /// Any between the least and the greatest.
    fn draw_ns(&self, random: &mut Stream) -> u64 {
        let outages = || self.outage_us.iter().map(|outage| outage.get() * NS_PER_US);
        let (least_ns, most_ns) = (outages().min().unwrap_or(0), outages().max().unwrap_or(0));
        least_ns + random.below(most_ns - least_ns + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/link-failure.toml");

    fn parse(text: &str) -> Result<Reconvergence, String> {
        let mut parsed: Reconvergence = toml::from_str(text).map_err(|error| error.to_string())?;
        parsed.read(Path::new(SCENARIO))?;
        Ok(parsed)
    }

    /// The last packet came up to 50 ms before the failure: detection after 100 to 150 ms, and 2 ms for the routes.
    #[test]
    fn bfd_takes_its_detection_time_less_the_time_since_the_last_packet() {
        let bfd = parse("bfd = { interval_us = 50_000, multiplier = 3, computing_us = 2_000 }").unwrap();
        let mut random = Stream::new(1, "bfd");
        let one: Vec<u64> = (0..2000).map(|_| bfd.draw_ns(&mut random, 1)).collect();
        assert!(one.iter().all(|ns| (102_000_000..=152_000_000).contains(ns)), "{one:?}");
        let mean_ms = one.iter().sum::<u64>() as f64 / 2000.0 / 1e6;
        // Half of a gap of 43.75 ms on average.
        assert!((mean_ms - (152.0 - 43.75 / 2.0)).abs() < 1.0, "{mean_ms}");
        let eight: u64 = (0..2000).map(|_| bfd.draw_ns(&mut random, 8)).sum::<u64>() / 2000;
        assert!(eight > 145_000_000, "the last of eight: {eight}");
    }

    #[test]
    fn measured_outages_come_from_the_file() {
        let measured = parse("measured = \"measured/bfd-transit.toml\"").unwrap();
        let file = Path::new(SCENARIO).with_file_name("measured/bfd-transit.toml");
        let file: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
        let us = |outage: &toml::Value| u64::try_from(outage.as_integer().unwrap()).unwrap();
        let outages_us: Vec<u64> = file["outage_us"].as_array().unwrap().iter().map(us).collect();
        let [least, most] = [outages_us.iter().min(), outages_us.iter().max()].map(|us| us.unwrap() * 1_000);
        let mut random = Stream::new(1, "measured");
        let drawn: Vec<u64> = (0..1000).map(|_| measured.draw_ns(&mut random, 1)).collect();
        assert!(least < most && drawn.iter().all(|ns| (least..=most).contains(ns)), "{drawn:?}");
        let tenth = (most - least) / 10;
        assert!(drawn.iter().any(|ns| *ns < least + tenth) && drawn.iter().any(|ns| *ns > most - tenth));
    }

    #[test]
    fn mistakes_are_refused() {
        for (text, expected) in [
            ("", "expected one of the keys"),
            (
                "measured = \"none.toml\"\nbfd = { interval_us = 50_000, multiplier = 3, computing_us = 0 }",
                "one of the",
            ),
            ("measured = \"measured/none.toml\"", "none.toml"),
            ("measured = \"link-failure.toml\"", "link-failure.toml:6: unknown key"),
            ("bfd = { interval_us = 50_000, multiplier = 1, computing_us = 0 }", "integer from 2 to 255"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}\n  expected: {expected}");
        }
    }
}
