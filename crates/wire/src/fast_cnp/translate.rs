use crate::bth::{BthView, Opcode};
use crate::checksum::Update;
use crate::icrc::{Delta, Icrc, Shift};
use crate::ipv6::{Ipv6View, NextHeader};
use crate::psn::Qpn;
use crate::rocev2::Packet;
use crate::transport::CnpView;
use crate::udp::UdpView;
use crate::view::View;
use core::net::Ipv6Addr;

/// Octets of a standard CNP, from its IPv6 header to its ICRC (FC-3-1).
pub const STANDARD_CNP_LEN: usize = Ipv6View::LEN + UdpView::LEN + BthView::LEN + CnpView::LEN + Icrc::LEN;

const SOURCE: usize = 8;
const UDP_CHECKSUM: usize = Ipv6View::LEN + 6;
const BTH: usize = Ipv6View::LEN + UdpView::LEN;
const QPN: usize = BTH + BthView::DEST_QP_OFFSET;
const BEHIND_QPN: usize = QPN + 3;
const ICRC: usize = STANDARD_CNP_LEN - Icrc::LEN;

/// Translation of a Fast CNP for a host that does not support the option (FC-O-1, D48).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The new source: the original destination, from which the host awaits CNPs.
    pub source: Ipv6Addr,
    /// The host's own queue pair, which is connected to (original destination, Destination QP).
    pub dest_qpn: Qpn,
}

/// `packet`, a CNP with extension headers, without them and with another source and Destination QP. `whole` are its
/// octets from the IPv6 header on. ICRC (D43) and UDP checksum are updated by difference, so that damage stays damage
/// (D10). `None` when `whole` is not all of the packet, or when it is no CNP of the standard length.
pub fn standard_cnp(packet: &Packet<'_>, whole: &[u8], translation: Translation) -> Option<[u8; STANDARD_CNP_LEN]> {
    if packet.bth.opcode() != Opcode::CNP {
        return None;
    }
    let ipv6 = whole.first_chunk::<{ Ipv6View::LEN }>()?;
    let upper_layer = whole.get(packet.udp_offset()..packet.total_len())?;
    let mut cnp = [0; STANDARD_CNP_LEN];
    let (ipv6_place, upper_layer_place) = cnp.split_first_chunk_mut::<{ Ipv6View::LEN }>()?;
    *ipv6_place = *ipv6;
    if upper_layer.len() != upper_layer_place.len() {
        return None;
    }
    upper_layer_place.copy_from_slice(upper_layer);
    let (ipv6, _) = Ipv6View::split_mut(&mut cnp).ok()?;
    ipv6.set_next_header(NextHeader::UDP);
    ipv6.set_payload_length((STANDARD_CNP_LEN - Ipv6View::LEN) as u16);
    readdress(&mut cnp, translation)?;
    Some(cnp)
}

/// Source and Destination QP in a standard CNP.
fn readdress(cnp: &mut [u8; STANDARD_CNP_LEN], to: Translation) -> Option<()> {
    let old_source = *chunk::<16>(cnp, SOURCE)?;
    let old_qpn = *chunk::<4>(cnp, QPN - 1)?;
    let covered = *chunk::<{ BEHIND_QPN - SOURCE }>(cnp, SOURCE)?;
    let [before, ..] = old_qpn;
    let [a, b, c] = to.dest_qpn.to_octets();
    let (new_source, new_qpn) = (to.source.octets(), [before, a, b, c]);
    *chunk_mut(cnp, SOURCE)? = new_source;
    *chunk_mut(cnp, QPN - 1)? = new_qpn;

    let delta = Delta::between(&covered, chunk(cnp, SOURCE)?).then(Shift::octets((ICRC - BEHIND_QPN) as u16));
    let old_icrc = *chunk::<{ Icrc::LEN }>(cnp, ICRC)?;
    let new_icrc = Icrc(old_icrc).changed_by(delta).0;
    *chunk_mut(cnp, ICRC)? = new_icrc;

    let mut update = Update::default();
    update.replace(&old_source, &new_source);
    update.replace(&old_qpn, &new_qpn);
    update.replace(&old_icrc, &new_icrc);
    let checksum = chunk_mut(cnp, UDP_CHECKSUM)?;
    *checksum = update.apply_udp(u16::from_be_bytes(*checksum)).to_be_bytes();
    Some(())
}

fn chunk<const N: usize>(octets: &[u8], at: usize) -> Option<&[u8; N]> {
    octets.get(at..)?.first_chunk()
}

fn chunk_mut<const N: usize>(octets: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    octets.get_mut(at..)?.first_chunk_mut()
}
