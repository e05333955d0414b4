//! `srdma decode`: the packets of a capture, down to the RDMA operation. Every field of the output is in
//! `docs/decode.md`.

mod cm;
mod dissect;
mod hmac;
mod icmpv6;
mod layer;
mod link;
mod network;
mod operation;
mod options;
mod record;
mod segment_routing;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod transport;

use crate::output::written;
use crate::units;
use anyhow::Context;
use hmac::Keys;
use record::{Damage, Dissection, Record, Within};
use srdma_capture::{Packet, ReadError, Reader};
use srdma_wire::fast_cnp::OptionTypes;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the packets of a capture, down to the RDMA operation.
///
/// Reads pcap and pcapng. Verifies the ICRC of RoCEv2 packets, checksums, and the HMAC of Segment Routing Headers. A
/// damaged packet is reported with its offset and the reason; the others are shown all the same.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The capture: pcap or pcapng, of Ethernet interfaces.
    file: PathBuf,
    /// One JSON object per packet and line.
    #[arg(long)]
    json: bool,
    /// A key for HMAC TLVs: HMAC Key ID (decimal, or hexadecimal after 0x) and the key's octets in hexadecimal. Repeat
    /// it for several keys.
    #[arg(long = "hmac-key", value_name = "ID=HEX", value_parser = parse_key)]
    hmac_keys: Vec<(u32, Vec<u8>)>,
    /// Option types of Fast CNPs: of option 1, which has an address, and of option 2, which has a trace as well.
    #[arg(long, value_name = "TYPE,TYPE", default_value = "0x9e,0x9e", value_parser = parse_option_types)]
    fast_cnp_types: OptionTypes,
    /// Rate of the link in bits per second, such as 100G: pauses are then told as times, too.
    #[arg(long, value_name = "BITS", value_parser = units::parse_rate)]
    link_rate: Option<u64>,
}

/// What is known beside the packets.
#[derive(Default)]
pub(crate) struct Known {
    /// Keys of HMAC TLVs.
    keys: Keys,
    /// Types of the Fast CNP options (FC-6-1).
    option_types: OptionTypes,
    /// Rate of the link that was captured.
    link_rate_bits_per_s: Option<u64>,
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
      Every pause of a traffic class, and how long it is.";

/// Runs the command.
///
/// # Errors
///
/// When the file cannot be opened or is no capture, or the output cannot be written. That the reader of the output has
/// gone, as `head` does, is no error.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let known = Known {
        keys: Keys::from_iter(arguments.hmac_keys.iter().map(|(id, secret)| (*id, secret.as_slice()))),
        option_types: arguments.fast_cnp_types,
        link_rate_bits_per_s: arguments.link_rate,
    };
    let reader = Reader::open(&arguments.file)
        .map_err(|error| error.reason)
        .with_context(|| format!("cannot decode {}", arguments.file.display()))?;
    let mut output = BufWriter::new(io::stdout().lock());
    written(write_packets(&mut output, reader, &known, arguments.json).and_then(|()| output.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// Decodes a capture from its octets, as the command does: a line for each packet, or a JSON object. The keys are those
/// of HMAC TLVs, under their ids.
///
/// # Errors
///
/// When it is no capture, or the output cannot be written.
pub fn decode(
    capture: impl Read,
    hmac_keys: &[(u32, &[u8])],
    json: bool,
    output: &mut impl Write,
) -> anyhow::Result<()> {
    let reader = Reader::new(capture).map_err(|error| error.reason)?;
    let known = Known { keys: hmac_keys.iter().copied().collect(), ..Known::default() };
    Ok(write_packets(output, reader, &known, json)?)
}

fn write_packets(
    output: &mut impl Write,
    packets: impl Iterator<Item = Result<Packet, ReadError>>,
    known: &Known,
    json: bool,
) -> io::Result<()> {
    let mut origin_ns = None;
    for packet in packets {
        let record = record(packet, known);
        if json {
            serde_json::to_writer(&mut *output, &record)?;
            output.write_all(b"\n")?;
        } else {
            origin_ns = origin_ns.or(record.time_ns);
            writeln!(output, "{}", text::line(&record, origin_ns.unwrap_or(0)))?;
        }
    }
    Ok(())
}

/// What there is to say of one item of a capture.
fn record(packet: Result<Packet, ReadError>, known: &Known) -> Record {
    match packet {
        Ok(packet) => Record {
            frame: packet.frame,
            time_ns: Some(packet.time_ns),
            length_octets: Some(packet.original_len),
            captured_octets: Some(packet.octets.len()),
            interface: packet.interface.name.clone(),
            dissection: dissect::dissect(&packet, known),
        },
        Err(ReadError { frame, offset, reason }) => {
            let error = Some(Damage { within: Within::File, offset, reason: reason.to_string() });
            let dissection = Dissection { error, ..Dissection::default() };
            Record { frame, time_ns: None, length_octets: None, captured_octets: None, interface: None, dissection }
        }
    }
}

/// A key as `--hmac-key` takes it: `ID=HEX`.
fn parse_key(argument: &str) -> Result<(u32, Vec<u8>), String> {
    let (id, key) = argument.split_once('=').ok_or("expected ID=HEX, found no '='")?;
    let parsed = match id.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => id.parse(),
    };
    let id = parsed.map_err(|error| format!("expected a 32-bit HMAC Key ID, found {id:?}: {error}"))?;
    let (pairs, odd) = key.as_bytes().as_chunks::<2>();
    if pairs.is_empty() || !odd.is_empty() {
        return Err(format!("expected a key of one or more octets, two digits each, found {} digits", key.len()));
    }
    let octet = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let octets = pairs.iter().map(octet).collect::<Option<Vec<_>>>();
    Ok((id, octets.ok_or_else(|| format!("expected hexadecimal digits, found {key:?}"))?))
}

/// Option types as `--fast-cnp-types` takes them.
fn parse_option_types(argument: &str) -> Result<OptionTypes, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let types = argument.split_once(',').and_then(|(first, second)| Some((number(first)?, number(second)?)));
    let types = types.and_then(|(address, trace)| OptionTypes::new(address, trace));
    types.ok_or_else(|| "expected two option types from 0x80 to 0x9f, such as 0x9e,0x9d".to_owned())
}

fn digit(character: u8) -> Option<u32> {
    char::from(character).to_digit(16)
}
