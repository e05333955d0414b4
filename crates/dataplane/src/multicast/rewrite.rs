//! One inner packet, many receivers: the fields that each copy changes, and the update of the checksums (MT-5.2-3, D5,
//! D10, D11). A copy is an ordinary packet of the receiver's connection to the Proxy Address (MT-5.2-4).
//!
//! ```text
//! | Ethernet 14 | IPv6 40: SA DA | UDP 8 | BTH 12: QPN | RETH 16 |  payload …  | ICRC |
//! |<----------------- head, written for each copy ------------>|<-- body --->|<tail>|
//!                  Proxy, R_i            QPN_i    VA_i, rkey_i                 updated
//! ```

use super::regions::Target;
use super::{ListedReceiver, RethRule};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6};
use crate::scope::is_mapped;
use srdma_group::{PsnOffset, ReceiverRegion, SourceRegion};
use srdma_wire::checksum::Update;
use srdma_wire::icrc::{Delta, Shift};
use srdma_wire::transport::{Reth, RethView};
use srdma_wire::{Icrc, Psn};
use zerocopy::IntoBytes;

/// Octets of the headers that every data packet has: IPv6, UDP and BTH.
pub(crate) const HEADERS: usize = RETH - IPV6;

/// Octets of the longest head.
pub(crate) const MAX_HEAD: usize = RETH + Reth::LEN;

/// Offsets in a head.
const SOURCE: usize = IPV6 + 8;
const DESTINATION: usize = IPV6 + 24;
const UDP_CHECKSUM: usize = AFTER_IPV6 + 6;
const BTH: usize = AFTER_IPV6 + 8;
const QPN: usize = BTH + 5;
const RETH: usize = AFTER_IPV6 + 8 + 12;

/// A receiver, and what its address and queue pair change in the ICRC.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Rewritten {
    address: [u8; 16],
    /// As it lies in the first eight octets of the BTH, the others zero.
    qpn_in_bth: u64,
    /// From the source address to the queue pair number, as seen at the ICRC of packets of the length that copies were
    /// last prepared for.
    delta_at_icrc: Delta,
    /// The same as seen behind the queue pair number.
    delta: Delta,
}

impl Rewritten {
    /// Prepares copies for `receiver` of packets from `source` to `proxy` and `designated_qpn`.
    pub(crate) fn new(
        receiver: &ListedReceiver,
        source: &[u8; 16],
        proxy: &[u8; 16],
        designated_qpn: &[u8; 3],
    ) -> Self {
        const LEN: usize = QPN + 3 - SOURCE;
        const DA: usize = DESTINATION - SOURCE;
        let mut old = [0; LEN];
        old[..16].copy_from_slice(source);
        old[DA..DA + 16].copy_from_slice(proxy);
        old[LEN - 3..].copy_from_slice(designated_qpn);
        let mut new = [0; LEN];
        new[..16].copy_from_slice(proxy);
        new[DA..DA + 16].copy_from_slice(&receiver.address.octets());
        new[LEN - 3..].copy_from_slice(&receiver.qpn.to_octets());
        let delta = Delta::between(&old, &new);
        Rewritten {
            address: receiver.address.octets(),
            qpn_in_bth: u64::from_le_bytes(u64::from(receiver.qpn.get()).to_be_bytes()),
            delta_at_icrc: delta,
            delta,
        }
    }

    /// Whether the copies leave in IPv4 (D272).
    pub(crate) fn is_to_ipv4(&self) -> bool {
        is_mapped(&self.address)
    }

    /// Prepares copies of packets in which so many octets lie between the queue pair number and the ICRC.
    pub(crate) fn prepare_for(&mut self, octets_behind_qpn: Shift) {
        self.delta_at_icrc = self.delta.then(octets_behind_qpn);
    }
}

/// A packet about to be copied.
#[derive(Clone, Debug)]
pub(crate) struct Rewrite<'r> {
    shared: Shared,
    whole_len: usize,
    icrc: Icrc,
    reth: Option<&'r RethRewrite>,
    /// Zero without a checksum. The other covered fields follow.
    udp_checksum: u16,
    source: [u8; 16],
    designated_qpn: [u8; 3],
}

/// The common octets of all copies' headers, as words, so that they are written by a few stores.
#[derive(Clone, Copy, Debug)]
struct Shared {
    /// IPv6, up to the hop limit.
    ipv6: u64,
    proxy: [u8; 16],
    udp: u64,
    /// BTH, its queue pair number left zero.
    bth: u64,
    /// AckReq and PSN.
    bth_end: u32,
}

impl Shared {
    /// From the headers of a packet, whose hop limit is not zero and becomes one less (D5).
    #[inline]
    fn new(headers: &[u8; HEADERS]) -> Self {
        const HOP: u64 = u64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, 1]);
        const ALL_BUT_QPN: u64 = u64::from_le_bytes([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0]);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| headers[at - IPV6 + index]));
        Shared {
            ipv6: word(IPV6).wrapping_sub(HOP),
            proxy: std::array::from_fn(|index| headers[DESTINATION - IPV6 + index]),
            udp: word(AFTER_IPV6),
            bth: word(BTH) & ALL_BUT_QPN,
            bth_end: (word(RETH - 8) >> 32) as u32,
        }
    }

    #[inline(always)]
    fn write(&self, copy: &Rewritten, into: &mut [u8; RETH]) {
        into[IPV6..SOURCE].copy_from_slice(&self.ipv6.to_le_bytes());
        into[SOURCE..DESTINATION].copy_from_slice(&self.proxy);
        into[DESTINATION..AFTER_IPV6].copy_from_slice(&copy.address);
        into[AFTER_IPV6..BTH].copy_from_slice(&self.udp.to_le_bytes());
        into[BTH..QPN + 3].copy_from_slice(&(self.bth | copy.qpn_in_bth).to_le_bytes());
        into[QPN + 3..RETH].copy_from_slice(&self.bth_end.to_le_bytes());
    }
}

/// The RETH of a packet that moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RethRewrite {
    old: Reth,
    target: Target,
    behind: Shift,
}

/// The ICRC is part of what a UDP checksum covers: its change in that of a packet of so many octets.
pub(crate) fn replace_icrc(update: &mut Update, packet_octets: usize, old: Icrc, new: Icrc) {
    // In a packet of even length it begins a word of the checksum.
    let at_parity = |Icrc([a, b, c, d]): Icrc| {
        if packet_octets % 2 == 1 { [0, a, b, c, d, 0] } else { [a, b, c, d, 0, 0] }
    };
    update.replace(&at_parity(old), &at_parity(new));
}

/// The octets between queue pair number and ICRC in a packet of so many octets.
pub(crate) fn behind_qpn(packet_octets: usize) -> Shift {
    Shift::octets((packet_octets - (QPN + 3 - IPV6) - Icrc::LEN) as u16)
}

impl<'r> Rewrite<'r> {
    /// Prepares the copies of a packet of so many octets, whose source address becomes the Proxy Address and whose hop
    /// limit, not zero, becomes one less (D5). `headers` are its own, which no extension header divides.
    #[inline(always)]
    pub(crate) fn new(headers: &[u8; HEADERS], octets: usize, icrc: Icrc, reth: Option<&'r RethRewrite>) -> Self {
        const SOURCE_AT: usize = SOURCE - IPV6;
        const QPN_AT: usize = QPN - IPV6;
        Rewrite {
            shared: Shared::new(headers),
            whole_len: IPV6 + octets,
            icrc,
            reth,
            udp_checksum: u16::from_be_bytes([headers[UDP_CHECKSUM - IPV6], headers[UDP_CHECKSUM + 1 - IPV6]]),
            source: std::array::from_fn(|index| headers[SOURCE_AT + index]),
            designated_qpn: std::array::from_fn(|index| headers[QPN_AT + index]),
        }
    }

    /// The same for receivers whose PSNs are not the group's (D270): `None` without an offset.
    pub(crate) fn shifted(&self, offset: PsnOffset) -> Option<Self> {
        if offset.is_zero() {
            return None;
        }
        let old = self.shared.bth_end.to_le_bytes();
        let [flags, psn @ ..] = old;
        let [a, b, c] = offset.of_receiver(Psn::from_octets(psn)).to_octets();
        let new = [flags, a, b, c];
        let behind = Shift::octets((self.whole_len - RETH - Icrc::LEN) as u16);
        let icrc = self.icrc.changed_by(Delta::between(&old, &new).then(behind));
        let udp_checksum = match self.udp_checksum {
            0 => 0,
            checksum => {
                let mut update = Update::default();
                update.replace(&old, &new);
                replace_icrc(&mut update, self.whole_len - IPV6, self.icrc, icrc);
                update.apply_udp(checksum)
            }
        };
        let shared = Shared { bth_end: u32::from_le_bytes(new), ..self.shared };
        Some(Rewrite { shared, icrc, udp_checksum, ..self.clone() })
    }

    /// Octets of a whole copy, Ethernet and ICRC included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.whole_len
    }

    /// Octets of a copy's head, Ethernet included.
    #[inline]
    pub(crate) fn head_len(&self) -> usize {
        if self.reth.is_some() { MAX_HEAD } else { RETH }
    }

    /// The ICRC of the packet itself.
    pub(crate) fn icrc(&self) -> Icrc {
        self.icrc
    }

    /// Position of the region that a WRITE names, if its RETH moves.
    #[inline]
    pub(crate) fn region(&self) -> Option<u8> {
        self.reth.map(RethRewrite::region)
    }

    /// Writes a copy's head over the first octets of `into`, and returns its ICRC; `None`, and nothing written, when
    /// they are too few. WRITEs go to `region`.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        copy: &Rewritten,
        region: &Option<ReceiverRegion>,
        ethernet: &[u8; IPV6],
        into: &mut [u8],
    ) -> Option<Icrc> {
        let (into, behind) = into.split_first_chunk_mut::<RETH>()?;
        let mut delta = copy.delta_at_icrc;
        if let Some(reth) = self.reth {
            delta ^= reth.write(*region, behind.first_chunk_mut()?);
        }
        into[..IPV6].copy_from_slice(ethernet);
        self.shared.write(copy, into);
        let icrc = self.icrc.changed_by(delta);
        if self.udp_checksum != 0 {
            let checksum = self.udp_checksum_of(copy, *region, icrc);
            into[UDP_CHECKSUM..UDP_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(icrc)
    }

    /// The UDP checksum after a copy's changes (RFC 1624).
    #[cold]
    fn udp_checksum_of(&self, copy: &Rewritten, region: Option<ReceiverRegion>, icrc: Icrc) -> u16 {
        let mut update = Update::default();
        let proxy = &self.shared.proxy;
        update.replace(&self.source, proxy);
        update.replace(proxy, &copy.address);
        let [a, b, c] = self.designated_qpn;
        let [.., x, y, z] = copy.qpn_in_bth.to_le_bytes();
        update.replace(&[0, a, b, c], &[0, x, y, z]);
        if let Some(reth) = self.reth {
            let octets = |view: RethView| -> [u8; 16] { std::array::from_fn(|index| view.as_bytes()[index]) };
            update.replace(&octets(reth.old.emit()), &octets(reth.after(region)));
        }
        replace_icrc(&mut update, self.whole_len - IPV6, self.icrc, icrc);
        update.apply_udp(self.udp_checksum)
    }
}

impl RethRewrite {
    /// Of a packet of so many octets. Checks that the whole message is in the region that it names (D27), one of a
    /// group that has `more` regions than
    /// that of the rule (D191). A message without octets accesses no memory, so
    /// that its address and key are not checked (IBTA C9-88); inside the region they are rewritten nevertheless.
    #[cold]
    pub(crate) fn new(
        octets: usize,
        old: Reth,
        rule: &RethRule,
        more: &[SourceRegion],
    ) -> Result<Option<Self>, DropReason> {
        let target = match rule {
            RethRule::Keep => return Ok(None),
            RethRule::Move(first) => Target::of(&old, first, more),
            RethRule::Refuse => None,
        };
        match target {
            Some(target) => {
                let behind = Shift::octets((octets - (RETH + 12 - IPV6) - Icrc::LEN) as u16);
                Ok(Some(RethRewrite { old, target, behind }))
            }
            None if old.dma_length == 0 => Ok(None),
            None => Err(DropReason::OutsideRegion),
        }
    }

    /// Position of the region that the message names.
    pub(crate) fn region(&self) -> u8 {
        self.target.region
    }

    fn write(&self, region: Option<ReceiverRegion>, into: &mut [u8; Reth::LEN]) -> Delta {
        let new = self.after(region);
        let old = self.old.emit();
        into.copy_from_slice(new.as_bytes());
        let address_and_key = |reth: &RethView| -> [u8; 12] { std::array::from_fn(|index| reth.as_bytes()[index]) };
        Delta::between(&address_and_key(&old), &address_and_key(&new)).then(self.behind)
    }

    /// The RETH for a receiver; unchanged for one without a region.
    fn after(&self, region: Option<ReceiverRegion>) -> RethView {
        let moved = region.map(|region| Reth {
            virtual_address: region.base.wrapping_add(self.target.offset),
            rkey: region.rkey,
            dma_length: self.old.dma_length,
        });
        moved.unwrap_or(self.old).emit()
    }
}
