//! `srdma decode`: the packets of a capture, down to the RDMA operation. Every field of the output is in
//! `docs/decode.md`.

use crate::endpoint::parse_integer;
use crate::output::written;
use crate::units;
use anyhow::Context;
use srdma_capture::Reader;
use srdma_dissect::{EntropyPaths, Format, Settings, write_packets};
use srdma_wire::fast_cnp::OptionTypes;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the packets of a capture, down to the RDMA operation.
///
/// Reads pcap and pcapng. Verifies the ICRC of RoCEv2 packets, checksums, and the HMAC of Segment Routing Headers. A
/// damaged packet is reported with its offset and the reason; all others are shown.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The capture: pcap or pcapng, of Ethernet interfaces.
    file: PathBuf,
    /// One JSON object per packet and line.
    #[arg(long)]
    json: bool,
    /// A key for HMAC TLVs: HMAC Key ID (decimal, or hexadecimal after 0x) and the key's octets in hexadecimal. May be
    /// repeated.
    #[arg(long = "hmac-key", value_name = "ID=HEX", value_parser = parse_key)]
    hmac_keys: Vec<(u32, Vec<u8>)>,
    /// Option types of Fast CNPs: of option 1, which has an address, and of option 2, which has a trace as well.
    #[arg(long, value_name = "TYPE,TYPE", default_value = "0x9e,0x9e", value_parser = parse_option_types)]
    fast_cnp_types: OptionTypes,
    /// Rate of the link in bits per second, such as 100G: shows pauses as times, too.
    #[arg(long, value_name = "BITS", value_parser = units::parse_rate)]
    link_rate: Option<u64>,
    /// Routes with paths by entropy values, as `srdma plan entropy --route` prints them, or a node.toml: shows the
    /// uSIDs of each value's path, too.
    #[arg(long, value_name = "FILE")]
    routes: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  srdma decode S1-N6.pcapng
      A line per packet.

  srdma decode S1-N6.pcapng --hmac-key 42=736563726574
      The same, verifying HMAC TLVs of HMAC Key ID 42 with the key \"secret\".

  srdma decode S1-N6.pcapng --json | jq -c 'select(.icrc == \"bad\") | [.frame, .bth.psn]'
      Frame and PSN of every packet with a damaged ICRC.

  srdma decode N6-S1.pcapng --link-rate 100G --json | jq -c 'select(.pfc) | [.time_ns, .pfc.classes]'
      Every pause of a traffic class, and how long it is.

  srdma decode h1.pcapng --routes route.toml --json | jq -c 'select(.udp.entropy) | [.frame, .udp.entropy.usids]'
      The path of every packet that has one as an entropy value.";

/// Runs the command.
///
/// # Errors
///
/// If the file cannot be opened or is no capture, or the output cannot be written. A closed pipe, as with `head`, is no
/// error.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = Settings {
        hmac_keys: arguments.hmac_keys.iter().map(|(id, secret)| (*id, secret.as_slice())).collect(),
        option_types: arguments.fast_cnp_types,
        link_rate_bits_per_s: arguments.link_rate,
        entropy_paths: match &arguments.routes {
            Some(file) => srdma_node::entropy_routes(file)?.into(),
            None => EntropyPaths::default(),
        },
    };
    let format = if arguments.json { Format::Json } else { Format::Text };
    let reader = Reader::open(&arguments.file)
        .map_err(|error| error.reason)
        .with_context(|| format!("cannot decode {}", arguments.file.display()))?;
    let mut output = BufWriter::new(io::stdout().lock());
    written(write_packets(&mut output, reader, &settings, format).and_then(|()| output.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// A key as `--hmac-key` takes it: `ID=HEX`.
fn parse_key(argument: &str) -> Result<(u32, Vec<u8>), String> {
    let (id, key) = argument.split_once('=').ok_or("expected ID=HEX, found no '='")?;
    let parsed = match id.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => id.parse(),
    };
    let id = parsed.map_err(|error| format!("expected a 32-bit HMAC Key ID, found {id:?}: {error}"))?;
    let octets = hex::decode(key).map_err(|error| format!("expected a key in hexadecimal, found {key:?}: {error}"))?;
    if octets.is_empty() {
        return Err("expected a key of at least one octet, found none".to_owned());
    }
    Ok((id, octets))
}

/// Option types as `--fast-cnp-types` takes them.
fn parse_option_types(argument: &str) -> Result<OptionTypes, String> {
    let types = argument.split_once(',');
    let types = types.and_then(|(first, second)| Some((parse_integer(first)?, parse_integer(second)?)));
    let types = types.and_then(|(address, trace)| OptionTypes::new(address, trace));
    types.ok_or_else(|| "expected two option types from 0x80 to 0x9f, such as 0x9e,0x9d".to_owned())
}
