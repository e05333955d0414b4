//! The source of several rails.

use super::event::RailEvent;
use super::message::{Chunks, HEADER, LAYOUT, MAX_CHUNKS, RailHeader, RailPart, slot_octets};
use super::striper::{Action, Host, Striper};
use super::{Inputs, check_count, of_rail};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::engine::{self, OwnThread};
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared};
use crate::manifest::{Manifest, Slots};
use crate::memory::Octets;
use crate::publisher::layout;
use crate::source::{GroupOptions, Source};
use crate::versions::Sent;
use srdma_api::{Client, GroupState, ProblemType, ReceiverState};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Messages that a receiver has room for, on each rail.
const SLOTS: u16 = 4;
/// Versions that wait or are being sent.
const MAX_QUEUED: usize = 64;
/// Time that a rail without a response has beyond the stall time: a receiver that is dead is evicted before (D184).
const EVICTION: Duration = Duration::from_secs(5);
/// Interval for asking the controller again for the members of a group.
const QUERY_INTERVAL: Duration = Duration::from_millis(100);

/// A source of several rails.
#[derive(Clone, Debug)]
pub struct RailOptions {
    /// What the rails have in common. The slots are those of versions, whose memory receivers allocate. `proxy` and
    /// `keeps_current` are not options of rails.
    pub group: GroupOptions,
    /// The Proxy Address of each rail's group [default: addresses of the tenant's pool].
    pub proxies: Vec<Ipv6Addr>,
    /// Octets of a chunk, at most: what a rail sends at a time. A receiver has memory for four of them on each rail.
    pub chunk_octets: u32,
}

impl RailOptions {
    /// Two slots, each of which has room for buffers of these lengths, and chunks of 4 MiB.
    pub fn for_buffers(lengths: impl IntoIterator<Item = u64>) -> Self {
        RailOptions { group: GroupOptions::for_buffers(lengths), proxies: Vec::new(), chunk_octets: 4 << 20 }
    }

    fn check(&self, rails: usize) -> Result<()> {
        if self.group.proxy.is_some() {
            return Err(Error::NotOnRails("proxy"));
        }
        if self.group.keeps_current {
            return Err(Error::NotOnRails("keeps_current"));
        }
        if !self.group.more_slot_octets.is_empty() {
            return Err(Error::NotOnRails("more_slot_octets"));
        }
        if !self.proxies.is_empty() && self.proxies.len() != rails {
            return Err(Error::Count { expected: rails, found: self.proxies.len() });
        }
        self.group.slots.region_octets().ok_or(Error::Slots(self.group.slots))?;
        let (value, range) = (u64::from(self.chunk_octets), "4096 to 2^30");
        if !(1 << 12..=1 << 30).contains(&self.chunk_octets) {
            return Err(Error::OutOfRange { name: "chunk_octets", value, range });
        }
        if self.group.slots.octets / value >= u64::from(MAX_CHUNKS) / 2 {
            return Err(Error::OutOfRange { name: "chunk_octets", value, range: "2^-19 of a slot at least" });
        }
        Ok(())
    }

    fn of_rail(&self, rail: usize) -> GroupOptions {
        GroupOptions {
            slots: Slots { count: SLOTS, octets: slot_octets(self.chunk_octets) },
            proxy: self.proxies.get(rail).copied(),
            ..self.group.clone()
        }
    }
}

/// A version that waits or is being sent.
struct Job {
    manifest: Manifest,
    chunks: Chunks,
    buffers: Vec<Arc<Octets>>,
}

/// What the thread handles.
enum Input {
    Publish(Job),
    /// The groups are committed.
    Start,
    Rail(usize, Event),
    /// The answer to a query.
    Members(Vec<BTreeSet<Host>>),
    Close,
}

/// What the handle waits for.
#[derive(Debug, Default)]
struct Versions {
    newest: Option<u64>,
    sequence: u64,
    sent: Sent,
}

/// The group of a rail, until it is over.
struct Rail {
    client: Client,
    group: u32,
    source: Mutex<Option<Arc<Source>>>,
}

impl Rail {
    fn source(&self) -> MutexGuard<'_, Option<Arc<Source>>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The members of the group; `None` if the controller is to be asked again.
    fn members(&self) -> Option<BTreeSet<Host>> {
        let group = match self.client.group(self.group) {
            Ok(group) => group,
            Err(error) if error.is(ProblemType::UnknownGroup) => return Some(BTreeSet::new()),
            Err(_) => return None,
        };
        match group.summary.state {
            GroupState::Open | GroupState::Creating => None,
            GroupState::Stopped | GroupState::Closing | GroupState::Closed => Some(BTreeSet::new()),
            GroupState::Ready | GroupState::Changing | GroupState::Verifying => {
                // One that is leaving may have been left out of an acknowledgement.
                let is_member = |state| match state {
                    ReceiverState::Member | ReceiverState::Unverified => true,
                    ReceiverState::Joining | ReceiverState::Leaving => false,
                };
                let members = group.members.iter().filter(|member| is_member(member.state));
                Some(members.map(|member| member.host.map_or(Host::Address(member.address), Host::Number)).collect())
            }
        }
    }
}

/// A source whose versions are striped over several rails. Dropping it is [`RailSource::close`].
pub struct RailSource {
    options: RailOptions,
    rails: Arc<Vec<Rail>>,
    shared: Arc<Shared<Versions, RailEvent>>,
    inputs: Inputs<Input>,
    /// Held by a commit.
    committing: Mutex<bool>,
    thread: OwnThread<()>,
}

impl RailSource {
    /// Creates a group for each device. The devices have different addresses, one of each NIC.
    ///
    /// # Errors
    ///
    /// If an option is out of range, or a group cannot be created, with its rail: then no group stays.
    pub fn create(rails: &[&Device], options: &RailOptions) -> Result<Self> {
        check_count(rails)?;
        options.check(rails.len())?;
        let gives_up_after = options.group.policy.t_stall.saturating_add(EVICTION);
        let create = |(rail, device): (usize, &&Device)| {
            let source = device.create_group_of(&options.of_rail(rail), Some(gives_up_after));
            let source = source.map_err(|error| of_rail(rail, error))?;
            Ok(Rail {
                client: device.client.clone(),
                group: source.group(),
                source: Mutex::new(Some(Arc::new(source))),
            })
        };
        let rails = Arc::new(rails.iter().enumerate().map(create).collect::<Result<Vec<Rail>>>()?);
        let shared = Arc::new(Shared::new("rails of a source".to_owned(), Versions::default())?);
        let (inputs, taken) = mpsc::channel();
        for (number, rail) in rails.iter().enumerate() {
            let inputs = inputs.clone();
            // The thread may have ended.
            let observer = move |event| drop(inputs.send(Input::Rail(number, event)));
            rail.source().iter().for_each(|source| source.observe(observer.clone()));
        }
        let (queries, asked) = mpsc::channel();
        let (found, own) = (inputs.clone(), Arc::clone(&rails));
        // Detached: a request that hangs ends with its own timeout.
        engine::start("srdma rail members", move || answer(&own, &asked, &found))?;
        let program = Program {
            rails: Arc::clone(&rails),
            shared: Arc::clone(&shared),
            striper: Striper::new(rails.len()),
            jobs: VecDeque::new(),
            numbers: vec![0; rails.len()],
            chunk_octets: options.chunk_octets,
            slow: None,
            queries,
        };
        let thread = OwnThread::start("srdma rails", move || program.run(&taken))?;
        let options = options.clone();
        Ok(RailSource { options, rails, shared, inputs, committing: Mutex::new(false), thread })
    }

    /// The number of each rail's group at the controller.
    pub fn groups(&self) -> Vec<u32> {
        self.rails.iter().map(|rail| rail.group).collect()
    }

    /// Waits for so many receivers on each rail, and commits the groups: from then on versions are sent.
    ///
    /// # Errors
    ///
    /// If the receivers or the nodes are not ready in time, or the controller refuses, with the rail.
    pub fn commit(&self, receivers: u32, timeout: Duration) -> Result<()> {
        self.shared.check_process()?;
        let mut is_committed = self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_committed {
            return Err(Error::AlreadyCommitted);
        }
        let begin = Instant::now();
        for (number, rail) in self.rails.iter().enumerate() {
            let Some(source) = rail.source().clone() else { continue };
            match source.commit(receivers, timeout.saturating_sub(begin.elapsed())) {
                // By a commit that has failed at a later rail.
                Ok(()) | Err(Error::AlreadyCommitted) => {}
                Err(error) => return Err(of_rail(number, error)),
            }
        }
        *is_committed = true;
        // A thread that has ended has said why.
        let _ = self.inputs.send(Input::Start);
        Ok(())
    }

    /// Publishes a version, whose number is greater than those before. Returns at once: the version is sent after those
    /// before it, and [`RailEvent::Published`] or [`RailEvent::Failed`] says when the buffers are the application's
    /// again.
    ///
    /// # Errors
    ///
    /// If the number is not greater, the buffers do not fit the slot, their names are not unique, too many versions
    /// wait, or all rails are over.
    pub fn publish(&self, version: u64, buffers: Vec<Buffer>) -> Result<()> {
        self.shared.check_process()?;
        let mut state = self.shared.lock();
        if let Some(over) = state.over() {
            return Err(Error::Over(over.clone()));
        }
        if let Some(newest) = state.own.newest.filter(|newest| version <= *newest) {
            return Err(Error::NotNewer { version, newest });
        }
        if state.own.sent.outstanding() >= MAX_QUEUED {
            return Err(Error::QueueFull);
        }
        let GroupOptions { slots, digest, .. } = self.options.group;
        let manifest = Manifest::new(version, state.own.sequence, slots, digest, layout(&buffers))?;
        let chunks = Chunks::cut(&manifest, self.options.chunk_octets).ok_or(Error::QueueFull)?;
        let buffers = buffers.into_iter().map(|buffer| Arc::new(buffer.octets)).collect();
        state.own.newest = Some(version);
        state.own.sequence += 1;
        state.own.sent.begin(version);
        // While the state is locked, so that versions are in order. A thread that has ended has said why before.
        let _ = self.inputs.send(Input::Publish(Job { manifest, chunks, buffers }));
        Ok(())
    }

    /// Waits until a version is published: all hosts have all its octets.
    ///
    /// # Errors
    ///
    /// If it is not published in time or has failed, or there is no such version.
    pub fn wait(&self, version: u64, timeout: Duration) -> Result<()> {
        self.shared.wait(timeout, |state| state.own.sent.result(version, state.over()))
    }

    /// The oldest event not yet fetched.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn next_event(&self) -> Result<Option<RailEvent>> {
        self.shared.next_event()
    }

    /// Ends the source and closes the groups. Versions that are not published fail; wait for the last one before.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn close(mut self) -> Result<()> {
        self.shared.check_process()?;
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        // A thread that has ended takes nothing.
        self.thread.end(|| drop(self.inputs.send(Input::Close)));
    }
}

impl Drop for RailSource {
    fn drop(&mut self) {
        self.end();
    }
}

impl AsFd for RailSource {
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd()
    }
}

impl AsRawFd for RailSource {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.raw_fd()
    }
}

/// Answers queries until the source has ended. A rail that is over has no members.
fn answer(rails: &[Rail], queries: &Receiver<()>, found: &Sender<Input>) {
    while queries.recv().is_ok() {
        let of_rail = |rail: &Rail| {
            while rail.source().is_some() {
                match rail.members() {
                    Some(members) => return members,
                    None => thread::sleep(QUERY_INTERVAL),
                }
            }
            BTreeSet::new()
        };
        if found.send(Input::Members(rails.iter().map(of_rail).collect())).is_err() {
            return;
        }
    }
}

/// The program of the thread.
struct Program {
    rails: Arc<Vec<Rail>>,
    shared: Arc<Shared<Versions, RailEvent>>,
    striper: Striper,
    /// The version that is being sent, and those behind it.
    jobs: VecDeque<Job>,
    /// Messages of each rail so far.
    numbers: Vec<u64>,
    chunk_octets: u32,
    /// The version that was reported last as slow.
    slow: Option<u64>,
    queries: Sender<()>,
}

impl Program {
    fn run(mut self, inputs: &Receiver<Input>) {
        let over = loop {
            // The handle has a sender.
            let Ok(input) = inputs.recv() else { break Over::Closed };
            match input {
                Input::Publish(job) => {
                    self.striper.publish(job.manifest.version(), job.chunks.count());
                    self.jobs.push_back(job);
                }
                Input::Start => self.striper.start(),
                Input::Members(members) => self.striper.members(&members),
                Input::Rail(rail, event) => {
                    if let Some(last) = self.take(rail, event) {
                        break last;
                    }
                }
                Input::Close => break Over::Closed,
            }
            self.act();
        };
        // When they have ended nothing reads the buffers any more.
        let sources: Vec<_> = self.rails.iter().filter_map(|rail| rail.source().take()).collect();
        drop(sources);
        let versions: Vec<u64> = self.jobs.drain(..).map(|job| job.manifest.version()).collect();
        let mut events = versions.iter().map(|version| RailEvent::Failed { version: *version, why: over.clone() });
        self.shared.push(events.by_ref(), |own| versions.iter().for_each(|version| own.sent.end(*version, false)));
        self.shared.end(over);
        // Those that were published meanwhile.
        let late = inputs.try_iter().filter_map(|input| match input {
            Input::Publish(job) => Some(job.manifest.version()),
            Input::Start | Input::Members(_) | Input::Rail(..) | Input::Close => None,
        });
        let late: Vec<u64> = late.collect();
        self.shared.push([], |own| late.iter().for_each(|version| own.sent.end(*version, false)));
    }

    /// An event of a rail; the reason if it was the last one.
    fn take(&mut self, rail: usize, event: Event) -> Option<Over> {
        match event {
            Event::Published { .. } => self.striper.acknowledged(rail),
            Event::Slow { .. } => {
                if let Some(version) = self.striper.current().filter(|version| self.slow < Some(*version)) {
                    self.slow = Some(version);
                    self.shared.push([RailEvent::Slow { version }], |_| {});
                }
            }
            Event::Over(over) => {
                self.abandon(rail);
                self.striper.over(rail);
                self.shared.push([RailEvent::RailOver { rail, over: over.clone() }], |_| {});
                return (!(0..self.rails.len()).any(|rail| self.striper.is_live(rail))).then_some(over);
            }
            // The end of the rail follows.
            Event::Failed { .. } => {}
            // Those of receivers; and a rail keeps none, so that it loses none.
            Event::Joined
            | Event::Version { .. }
            | Event::Rejected { .. }
            | Event::SourceSilent
            | Event::Resumed { .. }
            | Event::RankAttached { .. }
            | Event::RankDetached { .. }
            | Event::RankHolds { .. }
            | Event::OwnerLost
            | Event::Lost(_) => {}
        }
        None
    }

    /// Closes the group of a rail, so that its receivers learn that it is over.
    fn abandon(&self, rail: usize) {
        let source = self.rails.get(rail).and_then(|rail| rail.source().take());
        // It waits for the controller. Without a thread it does so here.
        let _ = engine::start("srdma rail end", move || drop(source));
    }

    fn act(&mut self) {
        while let Some(action) = self.striper.poll_action() {
            match action {
                // Its thread ends with this one.
                Action::Query => drop(self.queries.send(())),
                Action::Send { rail, part } => {
                    if self.send(rail, part).is_none() {
                        // Its end is reported when nothing reads the buffers any more.
                        self.abandon(rail);
                    }
                }
                Action::Published { version } => {
                    self.jobs.pop_front();
                    self.shared.push([RailEvent::Published { version }], |own| own.sent.end(version, true));
                }
            }
        }
    }

    /// Sends a part of the oldest version. `None` if the rail cannot: its end follows, or has come.
    fn send(&mut self, rail: usize, part: RailPart) -> Option<()> {
        let job = self.jobs.front()?;
        let number = self.numbers.get_mut(rail)?;
        *number += 1;
        let header = RailHeader {
            version: job.manifest.version(),
            sequence: job.manifest.sequence(),
            part,
            chunks: job.chunks.count(),
            chunk_octets: self.chunk_octets,
            rail: rail as u16,
        };
        let mut buffers = vec![Buffer::new(HEADER, header.emit())];
        match part {
            RailPart::Layout => buffers.push(Buffer::new(LAYOUT, job.manifest.emit())),
            RailPart::Chunk(chunk) => {
                for (index, piece) in job.chunks.pieces(chunk).iter().enumerate() {
                    let octets = job.buffers.get(piece.buffer)?.part(piece.range.clone());
                    buffers.push(Buffer { name: index.to_string(), octets, region: 0 });
                }
            }
        }
        let source = self.rails.get(rail)?.source().clone()?;
        source.publish(*number, buffers).ok()
    }
}
