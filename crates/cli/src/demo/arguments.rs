//! The command line of `srdma demo`.

use crate::endpoint;
use crate::source_name::SourceName;
use crate::units::{parse_delay, parse_octets, parse_probability, parse_rate};
use clap::{Args, ValueEnum, value_parser};
use srdma_group::{ListMode, RepairMode, Rules};
use srdma_random::{Probability, Stream};
use srdma_rc::MAX_MESSAGE_OCTETS;
use srdma_sim::LinkModel;
use srdma_sim::baseline::Algorithm;
use srdma_sim::fabric::Headend;
use srdma_sim::topology::{MAX_RECEIVERS, Topology};
use srdma_sim::transfer::{Branching, Operation, TransferConfig};
use srdma_wire::{PathMtu, Psn};
use std::path::PathBuf;

/// Send an RDMA stream to a group of receivers through a simulated network and verify every octet.
#[derive(Args)]
pub(crate) struct Arguments {
    /// File to send instead of random data.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub(super) file: Option<PathBuf>,

    /// Amount of random data to send.
    #[arg(long, value_name = "OCTETS", default_value = "64MiB", value_parser = parse_octets)]
    pub(super) size: u64,

    /// Use a balanced tree of fan-out 8 with N receivers, 1 to 1024, instead of the draft's Figure 1.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=MAX_RECEIVERS as i64))]
    receivers: Option<u16>,

    /// RDMA operation.
    #[arg(long, value_enum, default_value_t = OperationName::Write)]
    operation: OperationName,

    /// Length of each message.
    #[arg(long, value_name = "OCTETS", default_value = "1MiB", value_parser = parse_message)]
    message: u32,

    /// RDMA path MTU, payload of a full packet: 256, 512, 1024, 2048 or 4096.
    #[arg(long, value_name = "OCTETS", default_value = "4096", value_parser = endpoint::parse_path_mtu)]
    path_mtu: PathMtu,

    /// Link MTU (largest IPv6 packet).
    #[arg(long, value_name = "OCTETS", default_value_t = 4608, value_parser = value_parser!(u16).range(1280..=9216))]
    link_mtu: u16,

    /// Rate of each link, in bits per second.
    #[arg(long, value_name = "RATE", default_value = "100G", value_parser = parse_rate)]
    link_rate: u64,

    /// Propagation delay of each link.
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = parse_delay)]
    link_delay: u64,

    /// Probability of a frame being lost, per link and direction.
    #[arg(long, value_name = "P", default_value = "0.001")]
    #[arg(value_parser = parse_probability, allow_negative_numbers = true)]
    pub(super) loss: f64,

    /// Probability of a frame arriving twice, per link and direction.
    #[arg(long, value_name = "P", default_value = "0", value_parser = parse_probability, allow_negative_numbers = true)]
    duplicate: f64,

    /// Probability of a frame being overtaken, per link and direction.
    #[arg(long, value_name = "P", default_value = "0", value_parser = parse_probability, allow_negative_numbers = true)]
    reorder: f64,

    /// Forwarding in the tree: SRv6 replication, or an IPv6 multicast group.
    #[arg(long, value_enum, default_value_t = TreeName::Replicate)]
    tree: TreeName,

    /// Node that encapsulates the source's packets.
    #[arg(long, value_enum, default_value_t = HeadendName::FirstHop)]
    headend: HeadendName,

    /// Source of the edges' receiver lists: TLVs of the packets, provisioning, or TLVs as long as they fit the link
    /// MTU.
    #[arg(long, value_enum, default_value_t = ListName::Auto)]
    receivers_in: ListName,

    /// Aggregation of responses: by rules R1 to R7, or by the draft's literal rules.
    #[arg(long, value_enum, default_value_t = RulesName::Default)]
    rules: RulesName,

    /// Nodes that send lost packets again, instead of the source: none, the edges, or all nodes of the tree.
    #[arg(long, value_enum, default_value_t = RepairName::Tree)]
    repair: RepairName,

    /// Retransmission by the source and the receivers.
    #[arg(long, value_enum, default_value_t = SourceName::GoBackN)]
    source: SourceName,

    /// Packets that the source may have outstanding [default: as many as the path holds].
    #[arg(long, value_name = "PACKETS", value_parser = value_parser!(u32).range(1..=65536))]
    window: Option<u32>,

    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Compare with unicast algorithms for the same data and hosts, each with its best chunk size and, with `--window`,
    /// the better one of its path's window and that [default: all].
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "ALGORITHM",
        num_args = 0..=1,
        default_missing_values = ["unicast", "chain", "binomial"]
    )]
    compare: Vec<AlgorithmName>,

    /// Capture each link to DIR/LINK.pcapng.
    #[arg(long, value_name = "DIR")]
    pub(super) pcap: Option<PathBuf>,

    /// Record the run into FILE, for the controller's page to replay (docs/page.md).
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Simulated time between two samples of the recording.
    #[arg(long, value_name = "TIME", default_value = "20us", value_parser = parse_delay, requires = "record")]
    pub(super) record_every: u64,

    /// Print the result as a JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AlgorithmName {
    Unicast,
    Chain,
    Binomial,
}

#[derive(Clone, Copy, ValueEnum)]
enum OperationName {
    Write,
    Send,
}

#[derive(Clone, Copy, ValueEnum)]
enum TreeName {
    Replicate,
    Multicast,
}

#[derive(Clone, Copy, ValueEnum)]
enum HeadendName {
    FirstHop,
    Host,
}

#[derive(Clone, Copy, ValueEnum)]
enum ListName {
    Tlv,
    Provisioned,
    Auto,
}

#[derive(Clone, Copy, ValueEnum)]
enum RepairName {
    Off,
    Edge,
    Tree,
}

#[derive(Clone, Copy, ValueEnum)]
enum RulesName {
    Default,
    Literal,
}

impl Arguments {
    /// The scenario that the arguments describe.
    pub(super) fn scenario(&self) -> TransferConfig {
        let topology = self.receivers.and_then(|receivers| Topology::balanced(usize::from(receivers)));
        let first_psn = Psn::new(Stream::new(self.seed, "first PSN").below(1 << 24) as u32);
        TransferConfig {
            topology: topology.unwrap_or_else(Topology::figure_1),
            seed: self.seed,
            link: self.link(),
            link_mtu: self.link_mtu,
            path_mtu: self.path_mtu,
            message_octets: self.message,
            first_psn,
            operation: match self.operation {
                OperationName::Write => Operation::Write,
                OperationName::Send => Operation::Send,
            },
            branching: match self.tree {
                TreeName::Replicate => Branching::Replicate,
                TreeName::Multicast => Branching::Multicast,
            },
            headend: match self.headend {
                HeadendName::FirstHop => Headend::FirstHop,
                HeadendName::Host => Headend::Host,
            },
            lists: match self.receivers_in {
                ListName::Tlv => ListMode::Tlv,
                ListName::Provisioned => ListMode::Provisioned,
                ListName::Auto => ListMode::Auto,
            },
            rules: match self.rules {
                RulesName::Default => Rules::Default,
                RulesName::Literal => Rules::Literal,
            },
            repair: match self.repair {
                RepairName::Off => RepairMode::Off,
                RepairName::Edge => RepairMode::Edge,
                RepairName::Tree => RepairMode::Tree,
            },
            retransmission: self.source.into(),
            window_packets: self.window,
            ..TransferConfig::figure_1()
        }
    }

    /// The algorithms to compare with, each once.
    pub(super) fn algorithms(&self) -> Vec<Algorithm> {
        let mut algorithms: Vec<Algorithm> = Vec::new();
        for name in &self.compare {
            let algorithm = match name {
                AlgorithmName::Unicast => Algorithm::Unicast,
                AlgorithmName::Chain => Algorithm::Chain,
                AlgorithmName::Binomial => Algorithm::Binomial,
            };
            if !algorithms.contains(&algorithm) {
                algorithms.push(algorithm);
            }
        }
        algorithms
    }

    fn link(&self) -> LinkModel {
        // Checked by the parser.
        let probability = |value| Probability::new(value).unwrap_or_default();
        LinkModel {
            rate_bits_per_s: self.link_rate,
            delay_ns: self.link_delay,
            loss: probability(self.loss),
            duplicate: probability(self.duplicate),
            reorder: probability(self.reorder),
        }
    }
}

fn parse_message(text: &str) -> Result<u32, String> {
    let octets = u32::try_from(parse_octets(text)?).ok().filter(|octets| *octets <= MAX_MESSAGE_OCTETS);
    octets.ok_or_else(|| format!("must be at most {MAX_MESSAGE_OCTETS} octets"))
}
