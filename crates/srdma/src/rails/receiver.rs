//! A receiver of several rails.

use super::assembler::{Assembled, Assembler, Buffers, Verdict};
use super::event::RailEvent;
use super::message::HEADER;
use super::{Inputs, check_count, of_rail};
use crate::device::{Device, unpredictable};
use crate::engine::OwnThread;
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared};
use crate::manifest::Manifest;
use crate::receiver::{Member, Receiver, Version};
use crate::subscriber::Rejection;
use crate::versions::Numbered;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A version that is whole. Dropping it frees its slot for a later one: a receiver that keeps as many as the source has
/// slots holds its source.
pub struct RailVersion {
    manifest: Arc<Manifest>,
    memory: Vec<u8>,
    home: Inputs<Input>,
    process: u32,
}

impl Drop for RailVersion {
    fn drop(&mut self) {
        // In a child of fork() the thread is not there.
        if std::process::id() == self.process {
            // The receiver may be closed.
            let _ = self.home.send(Input::Released(std::mem::take(&mut self.memory)));
        }
    }
}

impl fmt::Debug for RailVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} with {} buffers", self.number(), self.manifest.buffers().len())
    }
}

impl Numbered for RailVersion {
    fn number(&self) -> u64 {
        self.number()
    }
}

impl RailVersion {
    /// Its number.
    pub fn number(&self) -> u64 {
        self.manifest.version()
    }

    /// Names and lengths of its buffers.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The octets of a buffer, in place; `None` if the version has no buffer of this name.
    pub fn buffer(&self, name: &str) -> Option<&[u8]> {
        self.buffer_at(self.manifest.buffers().iter().position(|entry| entry.name == name)?)
    }

    /// The octets of a buffer, in place, by its place in the manifest.
    pub fn buffer_at(&self, index: usize) -> Option<&[u8]> {
        let entry = self.manifest.buffers().get(index)?;
        let start = usize::try_from(entry.offset).ok()?;
        self.memory.get(start..start.checked_add(usize::try_from(entry.length_octets).ok()?)?)
    }
}

/// What the thread handles.
enum Input {
    Rail(usize, Event),
    /// Memory of a version that the application has dropped.
    Released(Vec<u8>),
    Close,
}

/// A receiver of several rails. Dropping it is [`RailReceiver::close`].
pub struct RailReceiver {
    shared: Arc<Shared<VecDeque<RailVersion>, RailEvent>>,
    inputs: Inputs<Input>,
    thread: OwnThread<Result<()>>,
}

impl RailReceiver {
    /// Joins the group of each rail by a device: the first group by the first device, as the source has them. The
    /// devices have different addresses, one of each NIC.
    ///
    /// # Errors
    ///
    /// If there are not as many groups as devices, or a group cannot be joined, with its rail: then it is a member of
    /// none.
    pub fn join(rails: &[&Device], groups: &[u32]) -> Result<Self> {
        check_count(rails)?;
        if rails.len() != groups.len() {
            return Err(Error::Count { expected: rails.len(), found: groups.len() });
        }
        // Fresh for each join, below 2^53.
        let member = Member { host: Some(unpredictable() >> 11), follows: false, exchanges_slots: true };
        let join = |(rail, (device, group)): (usize, (&&Device, &u32))| {
            device.join_alone(*group, Vec::new(), member).map_err(|error| of_rail(rail, error))
        };
        let receivers = rails.iter().zip(groups).enumerate().map(join).collect::<Result<Vec<Receiver>>>()?;
        let shared = Arc::new(Shared::new("rails of a receiver".to_owned(), VecDeque::new())?);
        let (inputs, taken) = mpsc::channel();
        for (rail, receiver) in receivers.iter().enumerate() {
            let inputs = inputs.clone();
            // The thread may have ended.
            receiver.observe(move |event| drop(inputs.send(Input::Rail(rail, event))));
        }
        let program = Program {
            assembler: Assembler::new(receivers.len()),
            rails: receivers.into_iter().map(Rail::new).collect(),
            shared: Arc::clone(&shared),
            home: inputs.clone(),
            has_joined: false,
        };
        let thread = OwnThread::start("srdma rails", move || program.run(&taken))?;
        Ok(RailReceiver { shared, inputs, thread })
    }

    /// Takes the oldest whole version that was not taken, when there is one.
    ///
    /// # Errors
    ///
    /// If there is none in time, or there will be none.
    pub fn next_version(&self, timeout: Duration) -> Result<RailVersion> {
        self.shared.next_version(timeout)
    }

    /// Takes this version when it is whole. Versions before it that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// If it is not whole in time, or will not be: a later version is there.
    pub fn wait(&self, version: u64, timeout: Duration) -> Result<RailVersion> {
        self.shared.take_version(version, timeout)
    }

    /// The oldest event not yet fetched.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn next_event(&self) -> Result<Option<RailEvent>> {
        self.shared.next_event()
    }

    /// Leaves the groups and ends the receiver. Versions that were taken stay readable.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`]; and, with the rail, if the controller did not take a leave.
    pub fn close(mut self) -> Result<()> {
        self.shared.check_process()?;
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        // A thread that has ended takes nothing.
        let ended = self.thread.end(|| drop(self.inputs.send(Input::Close)));
        ended.and_then(|result| result.ok()).unwrap_or(Ok(()))
    }
}

impl Drop for RailReceiver {
    fn drop(&mut self) {
        // Without the controller's answer the groups evict the receiver.
        let _ = self.end();
    }
}

impl AsFd for RailReceiver {
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd()
    }
}

impl AsRawFd for RailReceiver {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.raw_fd()
    }
}

/// A rail's receiver, and what it has brought.
struct Rail {
    receiver: Option<Receiver>,
    has_joined: bool,
    /// Messages that are whole and not taken, the first one by `head` if it is held.
    whole: usize,
    head: Option<Version>,
    over: Option<Over>,
    /// The assembler knows that it is over.
    is_over: bool,
}

impl Rail {
    fn new(receiver: Receiver) -> Self {
        Rail { receiver: Some(receiver), has_joined: false, whole: 0, head: None, over: None, is_over: false }
    }

    /// The oldest message.
    fn next(&mut self) -> Option<Version> {
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        self.whole = self.whole.checked_sub(1)?;
        self.receiver.as_ref()?.next_version(Duration::ZERO).ok()
    }
}

/// The buffers of a message behind its header.
struct Behind<'a>(&'a Version);

impl Buffers for Behind<'_> {
    fn count(&self) -> usize {
        self.0.manifest().buffers().len().saturating_sub(1)
    }

    fn octets(&self, index: usize) -> Option<&[u8]> {
        self.0.buffer_at(index + 1)
    }
}

/// The program of the thread.
struct Program {
    rails: Vec<Rail>,
    assembler: Assembler,
    shared: Arc<Shared<VecDeque<RailVersion>, RailEvent>>,
    home: Inputs<Input>,
    has_joined: bool,
}

impl Program {
    fn run(mut self, inputs: &mpsc::Receiver<Input>) -> Result<()> {
        let over = loop {
            match inputs.recv() {
                Ok(Input::Rail(rail, event)) => self.take(rail, event),
                Ok(Input::Released(memory)) => self.assembler.release(memory),
                Ok(Input::Close) | Err(_) => break Over::Closed,
            }
            if let Some(last) = self.assemble() {
                break last;
            }
        };
        // Messages that are held free their slots, while their receivers are there.
        self.rails.iter_mut().for_each(|rail| drop(rail.head.take()));
        let close = |(number, rail): (usize, &mut Rail)| match rail.receiver.take() {
            Some(receiver) => receiver.close().map_err(|error| of_rail(number, error)),
            None => Ok(()),
        };
        let closed: Vec<Result<()>> = self.rails.iter_mut().enumerate().map(close).collect();
        self.shared.end(over);
        closed.into_iter().collect()
    }

    fn take(&mut self, number: usize, event: Event) {
        let Some(rail) = self.rails.get_mut(number) else { return };
        match event {
            Event::Version { .. } => rail.whole += 1,
            Event::Joined => rail.has_joined = true,
            Event::Over(over) => {
                rail.over = Some(over.clone());
                self.shared.push([RailEvent::RailOver { rail: number, over }], |_| {});
            }
            Event::SourceSilent => self.shared.push([RailEvent::SourceSilent { rail: number }], |_| {}),
            // A message that began before the receiver joined.
            Event::Rejected { why: Rejection::Skipped, .. } => {}
            Event::Rejected { why, .. } => self.assembler.damaged(why),
            // Those of sources, of ranks and of receivers that follow; and a rail keeps none, so that it loses none.
            Event::Published { .. }
            | Event::Resumed { .. }
            | Event::Slow { .. }
            | Event::Failed { .. }
            | Event::RankAttached { .. }
            | Event::RankDetached { .. }
            | Event::RankHolds { .. }
            | Event::OwnerLost
            | Event::Lost(_) => return,
        }
        let is_settled = self.rails.iter().all(|rail| rail.has_joined || rail.over.is_some());
        if is_settled && !self.has_joined && self.rails.iter().any(|rail| rail.has_joined) {
            self.has_joined = true;
            self.shared.push([RailEvent::Joined], |_| {});
        }
    }

    /// Takes what can be taken. The reason if all rails are over.
    fn assemble(&mut self) -> Option<Over> {
        loop {
            let mut is_taken = false;
            for (number, rail) in self.rails.iter_mut().enumerate() {
                while let Some(message) = rail.next() {
                    let header = message.buffer(HEADER).unwrap_or_default();
                    match self.assembler.offer(number, header, &Behind(&message)) {
                        Verdict::Taken => is_taken = true,
                        Verdict::Held => {
                            rail.head = Some(message);
                            break;
                        }
                    }
                }
                if rail.over.is_some() && rail.head.is_none() && !rail.is_over {
                    rail.is_over = true;
                    self.assembler.over(number);
                    is_taken = true;
                }
            }
            if !is_taken {
                break;
            }
        }
        self.report();
        let last = self.rails.iter().rev().find_map(|rail| rail.over.clone());
        last.filter(|_| self.rails.iter().all(|rail| rail.is_over))
    }

    fn report(&mut self) {
        let mut events = Vec::new();
        let mut whole = Vec::new();
        while let Some(event) = self.assembler.poll_event() {
            events.push(match event {
                Assembled::Whole { manifest, memory } => {
                    let version = manifest.version();
                    let (home, process) = (self.home.clone(), std::process::id());
                    whole.push(RailVersion { manifest, memory, home, process });
                    RailEvent::Version { version }
                }
                Assembled::Rejected { version, why } => RailEvent::Rejected { version, why },
            });
        }
        if !events.is_empty() {
            self.shared.push(events, |versions| versions.extend(whole));
        }
    }
}
