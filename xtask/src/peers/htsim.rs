//! htsim: a permutation on a fat tree of 1,024 hosts, lossless and without congestion control, as in
//! `scenarios/permutation.toml`.

use super::ours::{Srdma, find};
use super::row::{Figures, Missing, Outcome, Row};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

const INSTALL: &str = "  git clone https://github.com/Broadcom/csg-htsim
  make -C csg-htsim/sim libhtsim.a && make -C csg-htsim/sim/datacenter htsim_roce
  cargo xtask peers --htsim csg-htsim/sim/datacenter/htsim_roce";

const HOSTS: usize = 1024;
const OCTETS: u32 = 4_000_000;

/// Links of 100 Gbit/s and 500 ns; packets of 4,096 octets and their headers; paths by a hash of the flow; pauses, with
/// queues that never overflow. The end, in microseconds, is one that all flows reach.
const OPTIONS: &str = "-nodes 1024 -tiers 3 -linkspeed 100000 -mtu 4160 -hop_latency 0.5 -paths 64 -strat ecmp_host \
                       -queue_type lossless_input -q 20000 -pfc_thresholds 200 220 -end 20000";

pub(super) fn measure(program: &Path, srdma: &Srdma, rounds: u32) -> Result<Outcome> {
    let program = match find(program) {
        Ok(program) => program,
        Err(why) => return Ok(Outcome::Missing(Missing { peer: "htsim", why, install: INSTALL })),
    };
    let directory = std::env::temp_dir().join(format!("srdma-peers-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let measured = run(&program, srdma, rounds, &directory);
    std::fs::remove_dir_all(&directory)?;
    measured.map(|row| Outcome::Measured(vec![row]))
}

fn run(program: &Path, srdma: &Srdma, rounds: u32, directory: &Path) -> Result<Row> {
    let matrix = directory.join("permutation.cm");
    std::fs::write(&matrix, connections(HOSTS, OCTETS))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let words = ["sim", "scenarios/permutation.toml", "--seeds", "1", "--json"];
        ours.push(srdma.wall_time(&words)?.as_secs_f64());
        let mut command = srdma.bound(program);
        command.args(OPTIONS.split_whitespace()).arg("-tm").arg(&matrix).arg("-o").arg(directory.join("log"));
        let begin = Instant::now();
        let output = command.current_dir(directory).output().context("htsim does not run")?;
        theirs.push(begin.elapsed().as_secs_f64());
        let text = String::from_utf8_lossy(&output.stdout);
        let finished = finished(&text);
        ensure!(
            finished == HOSTS,
            "htsim has finished {finished} of {HOSTS} flows: it has not done the same work; {}; its last line: {}",
            output.status,
            text.lines().last().unwrap_or_default()
        );
    }
    Ok(Row {
        peer: "htsim (csg-htsim, RoCE)".to_owned(),
        case: "permutation, 1,024 x 4 MB".to_owned(),
        unit: "s",
        ours: Figures::of(ours),
        theirs: Figures::of(theirs),
        rounds: rounds.into(),
    })
}

/// A permutation without fixed points, as htsim reads it. Each host sends to one half of the fabric away and some
/// further, so that all flows cross the core.
fn connections(hosts: usize, octets: u32) -> String {
    let mut text = format!("Nodes {hosts}\nConnections {hosts}\n");
    for source in 0..hosts {
        let destination = (source * 5 + hosts / 2 + 7) % hosts;
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{source}->{destination} start 0 size {octets}");
    }
    text
}

fn finished(output: &str) -> usize {
    output.lines().filter(|line| line.starts_with("Flow ") && line.contains(" finished at ")).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_host_sends_to_one_other_and_receives_from_one() {
        let text = connections(HOSTS, 4);
        let pairs: Vec<(usize, usize)> = text
            .lines()
            .skip(2)
            .map(|line| {
                let (source, rest) = line.split_once("->").unwrap();
                (source.parse().unwrap(), rest.split(' ').next().unwrap().parse().unwrap())
            })
            .collect();
        assert_eq!(pairs.len(), HOSTS);
        assert!(pairs.iter().all(|(source, destination)| source != destination));
        let destinations: BTreeSet<usize> = pairs.iter().map(|(_, destination)| *destination).collect();
        assert_eq!(destinations.len(), HOSTS);
    }

    /// Lines of htsim itself, of 2024.
    #[test]
    fn flows_that_have_ended_are_counted() {
        let output = "Flow Roce_69_83 3187 finished at 358.769 total bytes 4001920\n.Flow of nothing\n\
                      Flow Roce_68_5 3184 finished at 360.036 total bytes 4001920\nDone\n";
        assert_eq!(finished(output), 2);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let srdma = Srdma::new(Some(Path::new("/nowhere/srdma")), 0).unwrap();
        let outcome = measure(Path::new("/nowhere/htsim_roce"), &srdma, 1).unwrap();
        assert!(matches!(outcome, Outcome::Missing(missing) if missing.why.contains("/nowhere/htsim_roce")));
    }
}
