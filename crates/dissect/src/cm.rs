//! Packets to the queue pair of general services: DETH, and the messages of the RDMA Communication Manager (IBTA volume
//! 1, chapter 12; MADs: section 13.4).

use super::dissector::{Dissector, Next};
use super::layer::{self, Hex64, Layer};
use super::record::Damage;
use srdma_wire::cm::CmMessage;
use srdma_wire::view::Truncated;

/// Class Communication Management.
const COMMUNICATION_MANAGEMENT: u8 = 0x07;

/// ```text
/// | DETH: Q_Key 4, reserved, Source QP 3 | MAD: Version, Class, Class Version, Method, Status 2, Class-specific 2,
/// | Transaction ID 8, Attribute ID 2, reserved 2, Attribute Modifier 4 | message 232 |
/// ```
pub(super) fn general_services(dissector: &mut Dissector<'_>) -> Result<Next, Damage> {
    let (deth, mad) = part::<8>(dissector, "DETH")?;
    let [q0, q1, q2, q3, _, s0, s1, s2] = *deth;
    dissector.push(Layer::Deth(layer::Deth {
        qkey: u32::from_be_bytes([q0, q1, q2, q3]),
        source_qpn: u32::from_be_bytes([0, s0, s1, s2]),
    }));
    dissector.advance_to(mad);
    let (header, message) = part::<24>(dissector, "MAD header")?;
    let [_, class, _, _, _, _, _, _, transaction @ .., a0, a1, _, _, _, _, _, _] = *header;
    if class != COMMUNICATION_MANAGEMENT {
        return Ok(dissector.payload(format!("MAD class {class:#04x}")));
    }
    let attribute = u16::from_be_bytes([a0, a1]);
    let said = CmMessage::parse(mad);
    let word = |at: usize| message.get(at..)?.first_chunk().map(|octets| u32::from_be_bytes(*octets));
    let is_request = attribute == 0x10;
    let (local_qpn, remote_qpn) = match said {
        Some(CmMessage::ConnectRequest { local_qpn, .. } | CmMessage::ConnectReply { local_qpn, .. }) => {
            (Some(local_qpn.get()), None)
        }
        Some(CmMessage::DisconnectRequest { remote_qpn }) => (None, Some(remote_qpn.get())),
        None => (None, None),
    };
    let name = name(attribute);
    dissector.push(Layer::Cm(layer::Cm {
        attribute_id: attribute,
        name,
        transaction_id: Hex64(u64::from_be_bytes(transaction)),
        local_id: word(0),
        // A ConnectRequest is the first to name the connection.
        remote_id: word(4).filter(|_| !is_request),
        local_qpn,
        remote_qpn,
    }));
    dissector.advance_to(message);
    if said.is_none() && matches!(attribute, 0x10 | 0x13 | 0x15) {
        dissector.report(dissector.damage(format!(
            "{} of MAD version 1, class version 2, with a connected queue pair expected, of a service RC or UC",
            name.unwrap_or_default()
        )));
    }
    Ok(Next::Nothing)
}

fn part<'a, const LEN: usize>(
    dissector: &Dissector<'a>,
    header: &'static str,
) -> Result<(&'a [u8; LEN], &'a [u8]), Damage> {
    let found = dissector.octets.len();
    let octets: &'a [u8] = dissector.octets;
    octets.split_first_chunk().ok_or_else(|| dissector.damage(Truncated { header, needed: LEN, found }))
}

/// Name of the message of an Attribute ID (IBTA volume 1, section 16.7.3).
fn name(attribute: u16) -> Option<&'static str> {
    Some(match attribute {
        0x10 => "ConnectRequest",
        0x11 => "MsgRcptAck",
        0x12 => "ConnectReject",
        0x13 => "ConnectReply",
        0x14 => "ReadyToUse",
        0x15 => "DisconnectRequest",
        0x16 => "DisconnectReply",
        0x17 => "ServiceIDResReq",
        0x18 => "ServiceIDResReqResp",
        0x19 => "LoadAlternatePath",
        0x1A => "AlternatePathResponse",
        _ => return None,
    })
}
