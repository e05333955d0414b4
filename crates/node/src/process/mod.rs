//! `srdma process`: one node run over captures. Their time stamps are its clock.

mod output;
pub(crate) mod replay;
mod report;

pub use output::OutputError;
use output::Outputs;
use replay::Replay;
pub(crate) use report::by_name;
pub use report::{GroupCountersReport, GroupReport, PortReport, Report, SidReport, TrafficReport};

use srdma_capture::{LinkType, Merge, ReadError, Reader, Reason};
use srdma_dataplane::Node;
use srdma_frame::PortId;
use srdma_wire::Instant;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A capture, and the port at which its packets come in.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub port: PortId,
    /// pcap or pcapng, of Ethernet.
    pub file: PathBuf,
}

/// Reasons for which a run ended early. No output is left half-written.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// An input that cannot be opened.
    #[error("port {port}: cannot read {}: {reason}", file.display())]
    Open {
        port: String,
        /// The capture.
        file: PathBuf,
        reason: Reason,
    },
    /// An input that is damaged.
    #[error("port {port}: {}: {error}", file.display())]
    Read {
        port: String,
        /// The capture.
        file: PathBuf,
        /// The error, with its position.
        error: ReadError,
    },
    /// An input of another link layer.
    #[error("port {port}: {}: packet {frame} has {found}, expected {}", file.display(), LinkType::ETHERNET)]
    NotEthernet {
        port: String,
        /// The capture.
        file: PathBuf,
        /// The packet.
        frame: u64,
        found: LinkType,
    },
    /// An output that cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Octets of the captures that have been read.
    pub read_octets: u64,
    /// Octets that there are.
    pub total_octets: u64,
}

/// Packets between two calls of `progress`.
const PACKETS_PER_PROGRESS: u64 = 1024;

/// Runs a node over captures and writes `DIRECTORY/PORT.pcapng` for each of its ports.
///
/// The captures are merged by their time stamps, which are the node's time; it never goes back, even if theirs do.
/// After the last packet the node goes on for `run_on`, so that its timers fire. The captures appear under their names
/// when the run is complete. Nothing is read further ahead than one packet a file.
///
/// # Errors
///
/// If a capture cannot be read, is damaged or no Ethernet, or an output cannot be written.
pub fn process(
    node: Node,
    inputs: &[Input],
    directory: &Path,
    run_on: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, ProcessError> {
    let name =
        |input: &Input| node.config().ports.get(input.port.index()).map_or_else(String::new, |port| port.name.clone());
    let names: Vec<String> = inputs.iter().map(name).collect();
    let mut readers = Vec::new();
    for (input, name) in inputs.iter().zip(&names) {
        readers.push(open(input, name)?);
    }
    let total_octets = inputs.iter().filter_map(|input| input.file.metadata().ok()).map(|file| file.len()).sum();
    let ports: Vec<String> = node.config().ports.iter().map(|port| port.name.clone()).collect();
    let mut replay = Replay::new(node, Outputs::create(directory, &ports)?);
    let mut offsets = vec![0; inputs.len()];
    let mut packets = 0_u64;
    for (index, packet) in Merge::new(readers) {
        let (input, name) = (&inputs[index], &names[index]);
        let (port, file) = (name.clone(), input.file.clone());
        let packet = match packet {
            Ok(packet) if packet.interface.link_type == LinkType::ETHERNET => packet,
            Ok(packet) => {
                let found = packet.interface.link_type;
                return Err(ProcessError::NotEthernet { port, file, frame: packet.frame, found });
            }
            Err(error) => return Err(ProcessError::Read { port, file, error }),
        };
        replay.packet(input.port, Instant::from_ns(packet.time_ns), &packet.octets)?;
        offsets[index] = packet.offset;
        packets += 1;
        if packets.is_multiple_of(PACKETS_PER_PROGRESS) {
            progress(Progress { read_octets: offsets.iter().sum(), total_octets });
        }
    }
    replay.run_on(run_on)?;
    let report = replay.report();
    replay.into_sink().finish()?;
    Ok(report)
}

fn open(input: &Input, port: &str) -> Result<Reader<File>, ProcessError> {
    let failed =
        |error: ReadError| ProcessError::Open { port: port.to_owned(), file: input.file.clone(), reason: error.reason };
    Reader::open(&input.file).map_err(failed)
}
