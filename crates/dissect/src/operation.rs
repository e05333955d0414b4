//! The extended transport headers of each operation.

use super::dissector::Dissector;
use super::layer::{self, AethKind, AtomicAckEth, Hex64, Ieth, ImmDt, Layer};
use super::record::Damage;
use srdma_wire::View;
use srdma_wire::bth::Opcode;
use srdma_wire::transport::{
    Aeth, AtomicAckEthView, AtomicEth, CnpView, IethView, ImmDtView, Reth, Syndrome, rnr_timer,
};

/// The headers between BTH and payload. Opcodes without a name have none that is known here.
pub(super) fn extension_headers(dissector: &mut Dissector<'_>, opcode: Opcode) -> Result<(), Damage> {
    if opcode.has_reth() {
        let (header, rest) = Reth::parse(dissector.octets).map_err(|error| dissector.damage(error))?;
        dissector.push(Layer::Reth(layer::Reth {
            virtual_address: Hex64(header.virtual_address),
            rkey: header.rkey,
            dma_length: header.dma_length,
        }));
        dissector.advance_to(rest);
    }
    if opcode.has_immediate() {
        let (header, rest) = ImmDtView::split(dissector.octets).map_err(|error| dissector.damage(error))?;
        dissector.push(Layer::ImmDt(ImmDt { data: hex::encode(header.0) }));
        dissector.advance_to(rest);
    }
    if opcode.has_aeth() {
        aeth(dissector)?;
    }
    match opcode {
        Opcode::SEND_LAST_INVALIDATE | Opcode::SEND_ONLY_INVALIDATE => {
            let (header, rest) = IethView::split(dissector.octets).map_err(|error| dissector.damage(error))?;
            dissector.push(Layer::Ieth(Ieth { rkey: header.rkey() }));
            dissector.advance_to(rest);
        }
        Opcode::ATOMIC_ACKNOWLEDGE => {
            let (header, rest) = AtomicAckEthView::split(dissector.octets).map_err(|error| dissector.damage(error))?;
            dissector.push(Layer::AtomicAckEth(AtomicAckEth { original: Hex64(header.original()) }));
            dissector.advance_to(rest);
        }
        Opcode::CNP => {
            let (payload, rest) = CnpView::split(dissector.octets).map_err(|error| dissector.damage(error))?;
            dissector.push(Layer::Cnp(layer::Cnp {
                count: payload.count(),
                load: Some(payload.load()).filter(|load| *load > 0),
                rate_mbit_per_s: payload.rate_mbit_per_s(),
                incast: payload.incast().map(|(flows, period_us)| layer::Incast { flows, period_us }),
            }));
            dissector.advance_to(rest);
        }
        other if other.is_atomic() => atomic_eth(dissector)?,
        _ => {}
    }
    Ok(())
}

fn aeth(dissector: &mut Dissector<'_>) -> Result<(), Damage> {
    let (header, rest) = Aeth::parse(dissector.octets).map_err(|error| dissector.damage(error))?;
    let (kind, code) = match header.syndrome {
        Syndrome::Ack(code) => (AethKind::Ack, code),
        Syndrome::RnrNak(code) => (AethKind::RnrNak, code),
        Syndrome::Nak(code) => (AethKind::Nak, code),
        Syndrome::Reserved(code) => (AethKind::Reserved, code),
    };
    let syndrome = header.syndrome.to_octet();
    dissector.push(Layer::Aeth(layer::Aeth {
        syndrome,
        kind,
        code,
        meaning: meaning(kind, code, header.msn),
        msn: header.msn,
    }));
    dissector.advance_to(rest);
    Ok(())
}

/// NAK code of a request for data between nodes, of those that IBTA reserves (D153).
const REPAIR_REQUEST: u8 = 16;

/// Meaning of a syndrome (IBTA volume 1, tables 43 to 46).
fn meaning(kind: AethKind, code: u8, msn: u32) -> String {
    match (kind, code) {
        (AethKind::Ack, 0x1F) => "ACK".into(),
        (AethKind::Ack, credits) => format!("ACK, credit code {credits}"),
        (AethKind::RnrNak, timer) => format!("RNR NAK, {} ms", rnr_timer(timer).as_micros() as f64 / 1000.0),
        (AethKind::Nak, 0) => "NAK PSN Sequence Error".into(),
        (AethKind::Nak, 1) => "NAK Invalid Request".into(),
        (AethKind::Nak, 2) => "NAK Remote Access Error".into(),
        (AethKind::Nak, 3) => "NAK Remote Operational Error".into(),
        (AethKind::Nak, 4) => "NAK Invalid RD Request".into(),
        (AethKind::Nak, REPAIR_REQUEST) => {
            format!("repair request for {msn} packet{} from this PSN on,", if msn == 1 { "" } else { "s" })
        }
        (AethKind::Nak, other) => format!("NAK, reserved code {other}"),
        (AethKind::Reserved, _) => "reserved syndrome".into(),
    }
}

fn atomic_eth(dissector: &mut Dissector<'_>) -> Result<(), Damage> {
    let (header, rest) = AtomicEth::parse(dissector.octets).map_err(|error| dissector.damage(error))?;
    dissector.push(Layer::AtomicEth(layer::AtomicEth {
        virtual_address: Hex64(header.virtual_address),
        rkey: header.rkey,
        swap_or_add: Hex64(header.swap_or_add),
        compare: Hex64(header.compare),
    }));
    dissector.advance_to(rest);
    Ok(())
}
