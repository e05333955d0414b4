//! `cargo xtask peers`: VPP, the kernel and htsim beside srdma, on the same work in the same run.
//!
//! The programs are measured in turn, so that a machine that is busy for a while is so for both. What is not installed
//! is named with the command that installs it, and is not counted as measured. `docs/performance.md` has the recipe.

mod frames;
mod htsim;
mod kernel;
mod ours;
mod row;
mod vpp;

use anyhow::{Result, bail};
use clap::ValueEnum;
use ours::Srdma;
use row::{Missing, Outcome, Row};
use std::io::{self, Write};
use std::path::PathBuf;

/// What is measured beside srdma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// Forwarding and SRv6 in the dataplane, clocks a packet.
    Vpp,
    /// Forwarding and SRv6 on veth links, nanoseconds a frame. Needs root.
    Kernel,
    /// A permutation on a fat tree, seconds of wall time.
    Htsim,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this one; may be repeated.
    #[arg(long = "only", value_enum, value_name = "PEER")]
    only: Vec<Peer>,
    /// Rounds, in each of which every program runs once. The kernel's are those of `srdma bench wire`.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// The processor that the measured program is bound to.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    cpu: u32,
    /// The program of VPP; its vppctl lies beside it, or is in PATH.
    #[arg(long, default_value = "vpp", value_name = "PROGRAM")]
    vpp: PathBuf,
    /// htsim's program for RoCE.
    #[arg(long, default_value = "htsim_roce", value_name = "PROGRAM")]
    htsim: PathBuf,
    /// A release build of srdma [default: cargo builds it].
    #[arg(long, value_name = "PROGRAM")]
    srdma: Option<PathBuf>,
    /// Print one JSON object for each row, and for each peer that is not measured.
    #[arg(long)]
    json: bool,
}

/// Measures and prints; `false` if a peer was not measured.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let srdma = Srdma::new(arguments.srdma.as_deref(), arguments.cpu)?;
    let mut is_complete = true;
    let mut out = Output { json: arguments.json, has_head: false };
    for peer in Peer::value_variants() {
        if !arguments.only.is_empty() && !arguments.only.contains(peer) {
            continue;
        }
        eprintln!("measuring {}", peer.to_possible_value().map_or_else(String::new, |name| name.get_name().to_owned()));
        let outcome = match peer {
            Peer::Vpp => vpp::measure(&arguments.vpp, &srdma, arguments.rounds),
            Peer::Kernel => kernel::measure(&srdma),
            Peer::Htsim => htsim::measure(&arguments.htsim, &srdma, arguments.rounds),
        };
        match outcome? {
            Outcome::Measured(rows) if rows.is_empty() => bail!("nothing was measured"),
            Outcome::Measured(rows) => rows.iter().try_for_each(|row| out.row(row))?,
            Outcome::Missing(missing) => {
                is_complete = false;
                out.missing(&missing)?;
            }
        }
    }
    Ok(is_complete)
}

/// The table.
struct Output {
    json: bool,
    has_head: bool,
}

impl Output {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return writeln!(out, "{}", row.json());
        }
        if !self.has_head {
            self.has_head = true;
            writeln!(out, "{}", Row::head())?;
        }
        writeln!(out, "{row}")
    }

    fn missing(&self, missing: &Missing) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json { writeln!(out, "{}", missing.json()) } else { writeln!(out, "{missing}") }
    }
}
