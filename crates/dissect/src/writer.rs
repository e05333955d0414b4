//! Dissected captures as lines.

use crate::record::Record;
use crate::settings::Settings;
use crate::text;
use srdma_capture::{Packet, ReadError};
use std::io::{self, Write};

/// Output format of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line of text.
    Text,
    /// One JSON object on a line.
    Json,
}

/// Writes one line for each packet; damaged packets have their offset and reason. Times in text count from the first.
///
/// # Errors
///
/// If `output` cannot be written.
pub fn write_packets(
    output: &mut impl Write,
    packets: impl Iterator<Item = Result<Packet, ReadError>>,
    settings: &Settings,
    format: Format,
) -> io::Result<()> {
    let mut origin_ns = None;
    for packet in packets {
        let record = Record::of(packet, settings);
        match format {
            Format::Json => {
                serde_json::to_writer(&mut *output, &record)?;
                output.write_all(b"\n")?;
            }
            Format::Text => {
                origin_ns = origin_ns.or(record.time_ns);
                writeln!(output, "{}", text::line(&record, origin_ns.unwrap_or(0)))?;
            }
        }
    }
    Ok(())
}
