//! Received frames, to the levels of their PDUs.

use super::{CircuitId, IsisDrop, Speaker};
use crate::adjacency::{Adjacency, HelloRefusal};
use crate::frame::{source_of, unwrap};
use crate::pdu::{Hello, LanHello, Level, Pdu, PduKind};
use srdma_wire::{Instant, MacAddress};

impl Speaker {
    /// Processes a frame received by a circuit. The next [`Speaker::tick`] sends the replies.
    pub fn receive(&mut self, now: Instant, circuit: CircuitId, frame: &[u8]) {
        match self.take(now, circuit, frame) {
            Ok(()) => self.counters.received += 1,
            Err(reason) => *self.drops.entry(reason).or_default() += 1,
        }
        self.settle_overload(now);
    }

    fn take(&mut self, now: Instant, circuit: CircuitId, frame: &[u8]) -> Result<(), IsisDrop> {
        let octets = unwrap(frame).ok_or(IsisDrop::NotIsis)?;
        let pdu = Pdu::parse(octets).map_err(|_| IsisDrop::Malformed)?;
        if self.config.key.as_ref().is_some_and(|key| !key.verifies(&pdu)) {
            return Err(IsisDrop::NotAuthentic);
        }
        let malformed = |_| IsisDrop::Malformed;
        match pdu.kind {
            PduKind::Hello => self.take_hello(now, circuit, &Hello::parse(&pdu).map_err(malformed)?),
            PduKind::LanHello(level) => {
                let hello = LanHello::parse(&pdu).map_err(malformed)?;
                self.take_lan_hello(now, circuit, level, &hello, source_of(frame).ok_or(IsisDrop::NotIsis)?)
            }
            PduKind::Lsp(level) | PduKind::Complete(level) | PduKind::Partial(level) => {
                let at = self.levels.iter_mut().find(|at| at.level() == level).ok_or(IsisDrop::OtherLevel)?;
                at.take(now, circuit, &pdu, source_of(frame))
            }
        }
    }

    /// Takes the hello of a point-to-point circuit: the neighbour may be at some of our levels.
    fn take_hello(&mut self, now: Instant, id: CircuitId, hello: &Hello) -> Result<(), IsisDrop> {
        self.levels.iter().try_for_each(|level| level.expect_circuit(id, false))?;
        let by_level: Vec<Result<Adjacency, HelloRefusal>> =
            self.levels.iter().map(|level| level.on_hello(now, id, hello)).collect();
        if by_level.iter().all(Result::is_err) {
            // A reason other than the level itself says more.
            let reasons = by_level.into_iter().filter_map(Result::err);
            let reason = reasons.min_by_key(|reason| *reason == HelloRefusal::OtherLevel);
            return Err(reason.map_or(IsisDrop::NoAdjacency, IsisDrop::Hello));
        }
        for (level, adjacency) in self.levels.iter_mut().zip(by_level) {
            level.take_hello(now, id, adjacency.ok());
        }
        self.say_hello(now, id);
        Ok(())
    }

    fn take_lan_hello(
        &mut self,
        now: Instant,
        id: CircuitId,
        level: Level,
        hello: &LanHello,
        from: MacAddress,
    ) -> Result<(), IsisDrop> {
        self.levels.iter().try_for_each(|level| level.expect_circuit(id, true))?;
        let at = self.levels.iter_mut().find(|at| at.level() == level);
        at.ok_or(IsisDrop::Hello(HelloRefusal::OtherLevel))?.take_lan_hello(now, id, hello, from)
    }
}
