//! A packet as one line, in the terms of the RFCs and drafts.

mod congestion;

use super::layer::{
    Aeth, Bth, ChecksumVerdict, Cnp, EndMt, Entropy, Fragment, HeaderOption, HmacTlv, Icmpv6, Incast, Ipv6, Layer, Mr,
    Options, Srh, Udp,
};
use super::record::{HmacVerdict, IcrcVerdict, Record, Within};
use srdma_wire::units::NS_PER_S;
use std::fmt::{self, Display, Formatter, Write};

/// `record` as a line, its time counted from `origin_ns`.
pub fn line(record: &Record, origin_ns: u64) -> String {
    let mut line = format!("{:>5}", record.frame);
    // Writing to a string cannot fail.
    let _ = write_line(&mut line, record, origin_ns);
    line
}

fn write_line(line: &mut String, record: &Record, origin_ns: u64) -> fmt::Result {
    if let Some(time_ns) = record.time_ns {
        let (sign, since_ns) = match time_ns.checked_sub(origin_ns) {
            Some(since_ns) => ("", since_ns),
            None => ("-", origin_ns - time_ns),
        };
        write!(line, "  {sign}{}.{:09}", since_ns / NS_PER_S, since_ns % NS_PER_S)?;
    }
    if let Some(interface) = &record.interface {
        // The text is from the file, and a terminal interprets control characters.
        line.push_str("  ");
        interface.chars().for_each(|character| match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        });
    }
    let dissection = &record.dissection;
    let has_ipv6 = dissection.layers.iter().any(|layer| matches!(layer, Layer::Ipv6(_)));
    let says_nothing = |layer: &&Layer| match layer {
        Layer::Ethernet(_) => has_ipv6,
        Layer::Cnp(Cnp { count, load, rate_mbit_per_s, incast }) => {
            *count == 0 && load.or(*rate_mbit_per_s).is_none() && incast.is_none()
        }
        _ => false,
    };
    let mut separator = "  ";
    for layer in dissection.layers.iter().filter(|layer| !says_nothing(layer)) {
        write!(line, "{separator}{layer}")?;
        separator = " | ";
    }
    match dissection.icrc {
        IcrcVerdict::Ok => line.push_str("  ICRC ok"),
        IcrcVerdict::Bad => line.push_str("  ICRC BAD"),
        IcrcVerdict::Absent => {}
    }
    if let Some(error) = &dissection.error {
        let within = match error.within {
            Within::File => "file",
            Within::Packet => "packet",
        };
        write!(line, "  DAMAGED at offset {} of the {within}: {}", error.offset, error.reason)?;
    }
    Ok(())
}

impl Display for Cnp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.count > 0).then(|| format!("stands for {} CNPs", self.count)),
            self.load.map(|load| format!("load of the path {load}")),
            self.rate_mbit_per_s.map(|rate| format!("notifies {rate} Mbit/s")),
            self.incast.map(|Incast { flows, period_us }| format!("{flows} congested flows, each in {period_us} us")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl Display for Layer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Layer::Ethernet(header) => write!(f, "{} > {}", header.source, header.destination),
            Layer::Vlan(tag) => write!(f, "VLAN {} priority {}", tag.id, tag.priority),
            Layer::Pfc(frame) => frame.fmt(f),
            Layer::Pause(frame) => frame.fmt(f),
            Layer::Ipv6(header) => header.fmt(f),
            Layer::HopByHop(header) => write!(f, "Hop-by-Hop Options{header}"),
            Layer::DestinationOptions(header) => write!(f, "Destination Options{header}"),
            Layer::Fragment(header) => header.fmt(f),
            Layer::Srh(header) => header.fmt(f),
            Layer::EndMt(tlv) => tlv.fmt(f),
            Layer::Mr(tlv) => tlv.fmt(f),
            Layer::HmacTlv(tlv) => tlv.fmt(f),
            Layer::Tlv(tlv) => write!(f, "TLV type {} ({})", tlv.kind, tlv.value),
            Layer::Icmpv6(message) => message.fmt(f),
            Layer::Udp(header) => header.fmt(f),
            Layer::Bth(header) => header.fmt(f),
            Layer::Reth(header) => {
                write!(f, "VA {} R_Key {:#x} length {}", header.virtual_address, header.rkey, header.dma_length)
            }
            Layer::ImmDt(header) => write!(f, "immediate 0x{}", header.data),
            Layer::Ieth(header) => write!(f, "invalidates R_Key {:#x}", header.rkey),
            Layer::Aeth(header) => header.fmt(f),
            Layer::AtomicEth(header) => write!(
                f,
                "VA {} R_Key {:#x} swap or add {} compare {}",
                header.virtual_address, header.rkey, header.swap_or_add, header.compare
            ),
            Layer::AtomicAckEth(header) => write!(f, "original {}", header.original),
            Layer::Cnp(payload) => payload.fmt(f),
            Layer::Deth(header) => write!(f, "from QPN {:#x}", header.source_qpn),
            Layer::Cm(message) => message.fmt(f),
            Layer::Payload(payload) => write!(f, "{} octets of {}", payload.octets, payload.protocol),
        }
    }
}

impl Display for Ipv6 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.source, self.destination)?;
        match self.ecn {
            "CE" => f.write_str(" CE"),
            _ => Ok(()),
        }
    }
}

impl Display for Options {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut separator = " ";
        for HeaderOption { kind, data, meaning } in &self.options {
            match meaning {
                Some(meaning) => write!(f, "{separator}{meaning}")?,
                None => write!(f, "{separator}{kind:#04x} ({data})")?,
            }
            separator = ", ";
        }
        Ok(())
    }
}

impl Display for Fragment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let more = if self.more_fragments { ", more follow" } else { "" };
        write!(f, "fragment {:#x} at {}{more}", self.identification, self.offset_octets)
    }
}

impl Display for Srh {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "SRH SL {} LE {} [", self.segments_left, self.last_entry)?;
        list(f, &self.segments, |f, segment| segment.fmt(f))?;
        f.write_char(']')
    }
}

impl Display for EndMt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "End.MT edge {} {{", self.edge)?;
        list(f, &self.receivers, |f, receiver| write!(f, "{} QPN {:#x}", receiver.address, receiver.qpn))?;
        f.write_char('}')
    }
}

impl Display for Mr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "MR edge {} {{", self.edge)?;
        list(f, &self.regions, |f, region| write!(f, "VA {} R_Key {:#x}", region.virtual_address, region.rkey))?;
        f.write_char('}')
    }
}

impl Display for HmacTlv {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "HMAC key {}{} ", self.key_id, if self.d_flag { " D" } else { "" })?;
        match self.verdict {
            HmacVerdict::Ok => write!(f, "ok (cover {})", self.cover.unwrap_or("")),
            HmacVerdict::UnknownKey => f.write_str("not verified (no such key given)"),
            HmacVerdict::Bad => write!(f, "BAD ({})", self.reason.unwrap_or("")),
            HmacVerdict::Absent => Ok(()),
        }
    }
}

impl Display for Icmpv6 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ICMPv6 {}/{} {}", self.kind, self.code, self.name)?;
        match self.kind {
            2 => write!(f, " MTU {}", self.parameter)?,
            4 => write!(f, " pointer {}", self.parameter)?,
            _ => {}
        }
        if let Some(quoted) = &self.quoted {
            write!(f, " about {quoted}")?;
        }
        if let Some(notification) = &self.notification {
            write!(f, " {notification}")?;
        }
        checksum(f, "ICMPv6", self.checksum)
    }
}

impl Display for Udp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "UDP {} > {}", self.source_port, self.destination_port)?;
        if let Some(entropy) = &self.entropy {
            write!(f, " {entropy}")?;
        }
        checksum(f, "UDP", self.checksum)
    }
}

impl Display for Entropy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "entropy {:#x}", self.value)?;
        match &self.usids {
            None => Ok(()),
            Some(usids) if usids.is_empty() => f.write_str(" no path"),
            Some(usids) => write!(f, " by {}", usids.join(" ")),
        }
    }
}

impl Display for Bth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(operation) => f.write_str(operation)?,
            None => write!(f, "BTH opcode {:#04x}", self.opcode)?,
        }
        write!(f, " QPN {:#x} PSN {}", self.dest_qpn, self.psn)?;
        let flags =
            [(self.ack_request, " AckReq"), (self.solicited_event, " SE"), (self.fecn, " FECN"), (self.becn, " BECN")];
        flags.into_iter().filter(|(set, _)| *set).try_for_each(|(_, name)| f.write_str(name))
    }
}

impl Display for Aeth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} MSN {}", self.meaning, self.msn)
    }
}

/// A checksum is only worth a word when it is wrong.
fn checksum(f: &mut Formatter<'_>, protocol: &str, verdict: ChecksumVerdict) -> fmt::Result {
    match verdict {
        ChecksumVerdict::Ok | ChecksumVerdict::Absent => Ok(()),
        ChecksumVerdict::Bad => write!(f, " {protocol} checksum BAD"),
    }
}

/// Items with commas between them.
fn list<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    write_item: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        write_item(f, item)?;
    }
    Ok(())
}
