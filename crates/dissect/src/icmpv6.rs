//! ICMPv6 messages, and the packets that errors quote.

use super::dissector::{Dissector, Next};
use super::layer::{ChecksumVerdict, Icmpv6, Layer, Notification};
use super::network;
use super::record::Damage;
use super::transport::checksum_of;
use srdma_wire::View;
use srdma_wire::icmpv6::Icmpv6View;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::notification::{Ask, NotificationView};

/// Types below this are errors and quote the packet that caused them (RFC 4443 section 2.1).
const FIRST_INFORMATIONAL: u8 = 128;

/// An ICMPv6 message. Of one that is no error, only the type is reported.
pub(super) fn message(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let whole = dissector.octets;
    let (header, rest) = Icmpv6View::split(whole).map_err(|error| dissector.damage(error))?;
    let checksum = match dissector.complete {
        true => checksum_of(dissector.carrier.as_ref(), whole, NextHeader::ICMPV6),
        false => ChecksumVerdict::Absent,
    };
    let is_error = header.kind < FIRST_INFORMATIONAL;
    let mut message = Icmpv6 {
        kind: header.kind,
        code: header.code,
        name: name(header.kind, header.code),
        checksum,
        parameter: header.parameter(),
        quoted: None,
        notification: notification(whole),
    };
    dissector.advance_to(rest);
    let quoted = is_error.then(|| network::parse(rest));
    match quoted {
        Some(Ok((packet, _))) => message.quoted = Some(packet),
        Some(Err(error)) => dissector.report(dissector.damage(format!("quoted packet: {error}"))),
        None => {}
    }
    dissector.push(Layer::Icmpv6(message));
    Ok(Next::Nothing)
}

/// Content of a congestion notification (D60).
fn notification(octets: &[u8]) -> Option<Notification> {
    let notification = NotificationView::split(octets).ok()?.0.value().ok()?;
    Some(Notification {
        ask: match notification.ask {
            Ask::Pause => "pause",
            Ask::Resume => "resume",
        },
        traffic_class: notification.traffic_class,
        level: notification.level,
        sequence: notification.sequence,
        hold_us: notification.hold_us,
        congested: notification.congested,
    })
}

/// The name of a type and code, in the words of RFC 4443, RFC 4861, RFC 8200 and RFC 8754; and D60.
fn name(kind: u8, code: u8) -> &'static str {
    match (kind, code) {
        (1, 0) => "Destination Unreachable: no route",
        (1, 1) => "Destination Unreachable: administratively prohibited",
        (1, 3) => "Destination Unreachable: address unreachable",
        (1, 4) => "Destination Unreachable: port unreachable",
        (1, _) => "Destination Unreachable",
        (2, _) => "Packet Too Big",
        (3, 0) => "Time Exceeded: hop limit",
        (3, _) => "Time Exceeded",
        (4, 0) => "Parameter Problem: erroneous header field",
        (4, 1) => "Parameter Problem: unrecognized next header",
        (4, 2) => "Parameter Problem: unrecognized IPv6 option",
        (4, 4) => "Parameter Problem: SR Upper-layer Header Error",
        (4, _) => "Parameter Problem",
        (128, _) => "Echo Request",
        (129, _) => "Echo Reply",
        (130, _) => "Multicast Listener Query",
        (131, _) => "Multicast Listener Report",
        (132, _) => "Multicast Listener Done",
        (133, _) => "Router Solicitation",
        (134, _) => "Router Advertisement",
        (135, _) => "Neighbor Solicitation",
        (136, _) => "Neighbor Advertisement",
        (137, _) => "Redirect",
        (143, _) => "Multicast Listener Report version 2",
        (200, 0) => "Congestion Notification: pause",
        (200, 1) => "Congestion Notification: resume",
        _ => "ICMPv6",
    }
}
