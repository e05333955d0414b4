//! The thread of a receiver: it joins, receives, and follows to groups that resume its own.

use super::membership::{Progress, Steps};
use super::{Core, OwnSlot, Slot, Version, Versions};
use crate::current::{Fetch, Piece};
use crate::engine;
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared};
use crate::provider::{Provider, ReceiverPair, ReceiverProgram, ReceiverQueue};
use crate::subscriber::{Subscriber, SubscriberEvent, WholeVersion};
use srdma_api::Group;
use srdma_wire::{Instant, Psn};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The program of the thread.
pub(super) struct Program {
    pub(super) core: Arc<Core>,
    pub(super) shared: Arc<Shared<Versions>>,
    pub(super) provider: Provider,
    progress: mpsc::Receiver<Progress>,
    /// Where the version before its first one is, unless it has none.
    fetch: Option<Arc<Fetch>>,
    /// That version, by unicast, and the join point for which it is fetched.
    pieces: Option<mpsc::Receiver<Piece>>,
    fetched_at: Option<Psn>,
    deadline: Option<Instant>,
    end: Option<End>,
}

/// Why a receiver gets nothing more from its group.
pub(super) enum End {
    Over(Over),
    /// Another one resumes it.
    Resumed(Box<Group>),
}

/// Pieces of a version by unicast that wait.
const MOST_PIECES: usize = 4;
/// Interval for looking at what the membership thread has found.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

impl Program {
    /// A receiver that has requested to join. `is_first`: before the group was committed.
    pub(super) fn new(
        core: Arc<Core>,
        shared: Arc<Shared<Versions>>,
        provider: Provider,
        steps: Steps,
        is_first: bool,
    ) -> Result<Self> {
        let (_, progress) = mpsc::channel();
        let (fetch, pieces, fetched_at, deadline, end) = (None, None, None, None, None);
        let mut program = Program { core, shared, provider, progress, fetch, pieces, fetched_at, deadline, end };
        program.begin(steps, is_first)?;
        Ok(program)
    }

    /// Follows the receiver's request to join at the controller.
    pub(super) fn begin(&mut self, steps: Steps, is_first: bool) -> Result<()> {
        let membership = Arc::clone(&self.core.place().membership);
        // One that joins later lacks the version that was published last.
        let fetch = Fetch { client: membership.client.clone(), group: membership.group.id };
        self.fetch = (!is_first).then(|| Arc::new(fetch));
        (self.pieces, self.fetched_at, self.end) = (None, None, None);
        let (progress, joined) = mpsc::channel();
        self.progress = joined;
        let wake = Arc::clone(&self.core.wake);
        // Detached: a request that hangs ends with its own timeout.
        engine::start("srdma membership", move || membership.watch(steps, &progress, || !wake.is_closing()))?;
        Ok(())
    }

    /// Receives from the group, and from those that resume it, to the end.
    pub(super) fn run(&mut self, mut pair: Box<dyn ReceiverPair>) -> Over {
        let mut joined = Event::Joined;
        loop {
            let successor = match self.receive(&mut *pair, joined) {
                End::Over(over) => return over,
                End::Resumed(successor) => successor,
            };
            pair = match self.follow(pair, *successor) {
                Ok(pair) => pair,
                Err(over) => return over,
            };
            joined = Event::Resumed { group: self.core.place().membership.group.id };
        }
    }

    /// Joins the group and receives until its end.
    fn receive(&mut self, pair: &mut dyn ReceiverPair, joined: Event) -> End {
        let psn = match self.wait_for_join(pair) {
            Ok(psn) => psn,
            Err(end) => return end,
        };
        if let Err(over) = pair.connect(psn) {
            return End::Over(over);
        }
        if psn != self.core.place().membership.group.initial_psn {
            self.core.subscriber().joins_late();
        }
        self.shared.push([joined], |_| {});
        self.fetch(psn);
        match pair.run(self) {
            Some(over) => End::Over(over),
            None => self.end.take().unwrap_or(End::Over(Over::Closed)),
        }
    }

    /// Waits until the group has the receiver: the first PSN that it gets.
    fn wait_for_join(&mut self, pair: &mut dyn ReceiverPair) -> std::result::Result<Psn, End> {
        loop {
            match self.progress.recv_timeout(LOOK_INTERVAL) {
                Ok(Progress::Reserved(psn, ready)) => {
                    let failed = |error: Error| End::Over(Over::QueuePair(error.to_string()));
                    pair.prepare(psn).map_err(failed)?;
                    self.fetch(psn);
                    // A membership thread that has ended says why.
                    let _ = ready.send(());
                }
                Ok(Progress::Joined(psn)) => return Ok(psn),
                Ok(Progress::Over(over)) => return Err(End::Over(over)),
                Ok(Progress::Resumed(successor)) => return Err(End::Resumed(successor)),
                // It is said of members.
                Ok(Progress::SourceSilent) => {}
                Err(RecvTimeoutError::Timeout) if !self.core.wake.is_closing() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(End::Over(Over::Closed));
                }
            }
        }
    }

    /// Fetches the version that was published last when the source was quiet at a join point: it is asked for before
    /// the source goes on, so that it comes before the next one wherever possible.
    fn fetch(&mut self, psn: Psn) {
        let Some(fetch) = self.fetch.clone().filter(|_| self.fetched_at != Some(psn)) else { return };
        self.fetched_at = Some(psn);
        let (passed, pieces) = mpsc::sync_channel(MOST_PIECES);
        let wake = Arc::clone(&self.core.wake);
        // Detached: it ends when its pieces are not taken, or with the timeout of its connection.
        let started = engine::start("srdma fetch", move || fetch.run(&passed, || wake.wake()));
        self.pieces = started.is_ok().then_some(pieces);
    }

    /// Passes on what has been fetched; false while there may be more at once.
    fn take_pieces(&mut self, subscriber: &mut Subscriber, queue: &mut dyn ReceiverQueue) -> bool {
        for _ in 0..MOST_PIECES {
            let Some(Ok(piece)) = self.pieces.as_ref().map(mpsc::Receiver::try_recv) else { return true };
            if !subscriber.take_piece(queue, piece) {
                self.pieces = None;
            }
        }
        false
    }

    /// Reports what has become of versions; returns the failure of the queue pair.
    pub(super) fn report(&self, subscriber: &mut Subscriber) -> Option<Over> {
        let mut events = Vec::new();
        let mut whole = Vec::new();
        let mut over = None;
        while let Some(event) = subscriber.poll_event() {
            match event {
                SubscriberEvent::Whole(WholeVersion { manifest, octets }) => {
                    let version = manifest.version();
                    let slot = Slot::Own(OwnSlot { core: Arc::clone(&self.core), version });
                    whole.push(Version::new(manifest, octets, slot));
                    events.push(Event::Version { version });
                }
                SubscriberEvent::Rejected { version, why } => events.push(Event::Rejected { version, why }),
                SubscriberEvent::Failed(error) => over = Some(Over::QueuePair(error.to_string())),
            }
        }
        if !events.is_empty() {
            self.shared.push(events, |versions| versions.extend(whole));
        }
        over
    }
}

impl ReceiverProgram for Program {
    fn work(&mut self, now: Instant, queue: &mut dyn ReceiverQueue) -> ControlFlow<()> {
        self.core.wake.take();
        let core = Arc::clone(&self.core);
        let mut subscriber = core.subscriber();
        subscriber.work(queue);
        let is_idle = self.take_pieces(&mut subscriber, queue);
        let failed = self.report(&mut subscriber);
        let look_at = if is_idle { now + LOOK_INTERVAL } else { now };
        self.deadline = subscriber.next_deadline(now).or(Some(look_at));
        let is_verifying = subscriber.is_verifying();
        drop(subscriber);
        self.end = failed.map(End::Over).or(self.end.take());
        match self.progress.try_recv() {
            Ok(Progress::Over(over)) => drop(self.end.get_or_insert(End::Over(over))),
            Ok(Progress::Resumed(successor)) => drop(self.end.get_or_insert(End::Resumed(successor))),
            Ok(Progress::SourceSilent) => self.shared.push([Event::SourceSilent], |_| {}),
            // It is a member.
            Ok(Progress::Reserved(..) | Progress::Joined(_)) | Err(_) => {}
        }
        let is_over = self.end.is_some() && !is_verifying;
        if is_over || self.core.wake.is_closing() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
