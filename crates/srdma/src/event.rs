//! Events of a source or a receiver, and a descriptor that is readable while there are some.

use crate::error::{Error, Over, Result};
use crate::publisher::Failure;
use crate::ranks::RankEnd;
use crate::subscriber::Rejection;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Something that has happened to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// At a source: all members have all octets of the version, and its buffers are the application's again.
    Published {
        /// The version.
        version: u64,
    },
    /// At a source: for `slow_after`, not every receiver has had a free slot for the version.
    Slow {
        /// The version.
        version: u64,
    },
    /// At a source: the version will not be published, and its buffers are the application's again.
    Failed {
        /// The version.
        version: u64,
        /// Why.
        failure: Failure,
    },
    /// At a receiver: it is a member of the group.
    Joined,
    /// At a receiver: the version is whole, and can be taken.
    Version {
        /// The version.
        version: u64,
    },
    /// At a receiver: the version will never be visible.
    Rejected {
        /// The version, if it is known.
        version: Option<u64>,
        /// Why.
        why: Rejection,
    },
    /// At a receiver: the controller has not heard of the source for its `source_silent_after_ms`. The source's process
    /// has ended without closing the group, or does not reach the controller; the receiver goes on.
    SourceSilent,
    /// At the owner of a host's receiver: another process of the host is attached to it.
    RankAttached {
        /// The process.
        process: i32,
    },
    /// At the owner of a host's receiver: it no longer is.
    RankDetached {
        /// The process.
        process: i32,
        /// Why.
        why: RankEnd,
    },
    /// At the owner of a host's receiver: the process has the version whose slot the next one needs, and has had it for
    /// a second since the newest one was whole.
    RankHolds {
        /// The process.
        process: i32,
        /// The version.
        version: u64,
    },
    /// At another process of the host: the owner of its receiver has ended. Versions stay as they are; one of the
    /// processes joins the group anew, and [`Event::Joined`] follows.
    OwnerLost,
    /// Nothing more happens.
    Over(Over),
    /// The application has not fetched its events for long: so many were dropped here.
    Lost(u64),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Published { version } => write!(f, "version {version} is published"),
            Event::Slow { version } => write!(f, "not every receiver has a free slot for version {version}"),
            Event::Failed { version, failure } => write!(f, "version {version} is not published: {failure}"),
            Event::Joined => write!(f, "the group has the receiver"),
            Event::Version { version } => write!(f, "version {version} is whole"),
            Event::Rejected { version: Some(version), why } => write!(f, "version {version} is rejected: {why}"),
            Event::Rejected { version: None, why } => write!(f, "a version is rejected: {why}"),
            Event::SourceSilent => write!(f, "the controller does not hear of the source any more"),
            Event::RankAttached { process } => write!(f, "process {process} is attached"),
            Event::RankDetached { process, why } => write!(f, "process {process} is no longer attached: {why}"),
            Event::RankHolds { process, version } => {
                write!(f, "process {process} holds up others by version {version}")
            }
            Event::OwnerLost => write!(f, "the owner of the host's receiver has ended"),
            Event::Over(over) => write!(f, "{over}"),
            Event::Lost(count) => write!(f, "{count} events were dropped, since the application has not fetched them"),
        }
    }
}

/// Events that are kept for an application that does not fetch them.
const MAX_EVENTS: usize = 1024;

/// An event of a handle.
pub(crate) trait HandleEvent {
    /// Nothing more happens.
    fn over(over: Over) -> Self;
    /// So many events were dropped.
    fn lost(count: u64) -> Self;
    /// Writes it to the log (D202).
    fn log(&self, handle: &str);
}

impl HandleEvent for Event {
    fn over(over: Over) -> Self {
        Event::Over(over)
    }

    fn lost(count: u64) -> Self {
        Event::Lost(count)
    }

    fn log(&self, handle: &str) {
        match self {
            Event::Published { .. } | Event::Version { .. } => tracing::debug!("{handle}: {self}"),
            Event::Joined | Event::Over(Over::GroupClosed | Over::Closed) => tracing::info!("{handle}: {self}"),
            Event::RankAttached { .. } | Event::RankDetached { why: RankEnd::Left, .. } => {
                tracing::info!("{handle}: {self}");
            }
            Event::Slow { .. } | Event::Failed { .. } | Event::Rejected { .. } | Event::SourceSilent => {
                tracing::warn!("{handle}: {self}");
            }
            Event::RankDetached { why: RankEnd::Ended | RankEnd::Detached(_), .. }
            | Event::RankHolds { .. }
            | Event::OwnerLost => tracing::warn!("{handle}: {self}"),
            Event::Lost(_) | Event::Over(Over::Evicted | Over::Refused(_) | Over::Detached(_) | Over::NoOwner(_)) => {
                tracing::warn!("{handle}: {self}");
            }
            Event::Over(Over::QueuePair(_) | Over::Socket(_) | Over::Device(_)) => tracing::error!("{handle}: {self}"),
        }
    }
}

/// Takes the events of a handle that is a part of another one.
type Observer<E> = Box<dyn FnMut(E) + Send>;

/// State that the threads of a handle share.
pub(crate) struct Shared<T, E = Event> {
    /// What the log calls it.
    name: String,
    state: Mutex<State<T, E>>,
    changed: Condvar,
    readable: EventFd,
    process: u32,
}

/// Events, and what else the handle's methods wait for.
pub(crate) struct State<T, E = Event> {
    events: VecDeque<E>,
    lost: u64,
    over: Option<Over>,
    observer: Option<Observer<E>>,
    pub(crate) own: T,
}

impl<T, E: HandleEvent> State<T, E> {
    /// Why the handle works no more.
    pub(crate) fn over(&self) -> Option<&Over> {
        self.over.as_ref()
    }
}

impl<T, E: HandleEvent> Shared<T, E> {
    pub(crate) fn new(name: String, own: T) -> Result<Self> {
        Ok(Shared {
            name,
            state: Mutex::new(State { events: VecDeque::new(), lost: 0, over: None, observer: None, own }),
            changed: Condvar::new(),
            readable: event_fd()?,
            process: std::process::id(),
        })
    }

    /// What the log calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    ///
    /// [`Error::Forked`] in another process than that of the handle.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.is_of_this_process() { Ok(()) } else { Err(Error::Forked) }
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        std::process::id() == self.process
    }

    /// Locks the state. A panic of another thread leaves it valid: its methods do not panic.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, after a change of the rest.
    pub(crate) fn push(&self, events: impl IntoIterator<Item = E>, change: impl FnOnce(&mut T)) {
        // Before the lock is taken: the log may be a function of the application.
        let events = events.into_iter().inspect(|event| event.log(&self.name)).collect::<Vec<_>>();
        let mut state = self.lock();
        change(&mut state.own);
        for event in events {
            state.push(event);
        }
        let is_readable = !state.events.is_empty();
        drop(state);
        if is_readable {
            // A counter that is full is readable as well.
            let _ = self.readable.write(1);
        }
        self.changed.notify_all();
    }

    /// Nothing more happens; the first reason stays.
    pub(crate) fn end(&self, over: Over) {
        let mut state = self.lock();
        let is_first = state.over.is_none();
        if is_first {
            state.over = Some(over.clone());
            state.push(E::over(over.clone()));
            let _ = self.readable.write(1);
        }
        drop(state);
        self.changed.notify_all();
        if is_first {
            E::over(over).log(&self.name);
        }
    }

    /// From now on events go to `observer`, which is called while the state is locked, and not to the application.
    pub(crate) fn observe(&self, mut observer: impl FnMut(E) + Send + 'static) {
        let mut state = self.lock();
        state.events.drain(..).for_each(&mut observer);
        state.observer = Some(Box::new(observer));
    }

    /// The oldest event not yet fetched.
    pub(crate) fn next_event(&self) -> Result<Option<E>> {
        self.check_process()?;
        let mut state = self.lock();
        let event = match std::mem::take(&mut state.lost) {
            0 => state.events.pop_front(),
            lost => Some(E::lost(lost)),
        };
        if state.events.is_empty() {
            // It was not readable.
            let _ = self.readable.read();
        }
        Ok(event)
    }

    /// Waits until `look` finds something, or time is up.
    pub(crate) fn wait<R>(
        &self,
        timeout: Duration,
        mut look: impl FnMut(&mut State<T, E>) -> Option<Result<R>>,
    ) -> Result<R> {
        self.check_process()?;
        let begin = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            let Some(left) = timeout.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(Error::Timeout);
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.readable.as_fd().as_raw_fd()
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

impl<T, E> State<T, E> {
    fn push(&mut self, event: E) {
        if let Some(observer) = &mut self.observer {
            return observer(event);
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(event);
    }
}

pub(crate) fn event_fd() -> Result<EventFd> {
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let what = "an eventfd";
    EventFd::from_value_and_flags(0, flags).map_err(|error| Error::System { what, error: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout};

    fn is_readable(shared: &Shared<()>) -> bool {
        let mut poll = [PollFd::new(shared.fd(), PollFlags::POLLIN)];
        nix::poll::poll(&mut poll, PollTimeout::ZERO).expect("poll works") == 1
    }

    #[test]
    fn the_descriptor_is_readable_while_there_are_events() {
        let shared = Shared::<()>::new("a handle".to_owned(), ()).expect("an eventfd");
        assert!(!is_readable(&shared));
        shared.push([], |()| {});
        assert!(!is_readable(&shared));
        shared.push([Event::Published { version: 1 }, Event::Slow { version: 2 }], |()| {});
        assert!(is_readable(&shared));
        assert_eq!(shared.next_event().expect("here"), Some(Event::Published { version: 1 }));
        assert!(is_readable(&shared), "level-triggered");
        assert_eq!(shared.next_event().expect("here"), Some(Event::Slow { version: 2 }));
        assert!(!is_readable(&shared));
        assert_eq!(shared.next_event().expect("here"), None);
    }

    #[test]
    fn old_events_are_dropped_and_counted() {
        let shared = Shared::<()>::new("a handle".to_owned(), ()).expect("an eventfd");
        let numbers = 0..MAX_EVENTS as u64 + 5;
        shared.push(numbers.map(|version| Event::Published { version }), |()| {});
        assert_eq!(shared.next_event().expect("here"), Some(Event::Lost(5)));
        assert_eq!(shared.next_event().expect("here"), Some(Event::Published { version: 5 }));
    }

    #[test]
    fn an_observer_gets_all_events_in_order() {
        let shared = Shared::<()>::new("a handle".to_owned(), ()).expect("an eventfd");
        shared.push([Event::Published { version: 1 }], |()| {});
        let (seen, events) = std::sync::mpsc::channel();
        shared.observe(move |event| seen.send(event).expect("it is there"));
        shared.push([Event::Published { version: 2 }], |()| {});
        shared.end(Over::Closed);
        let expected = [1, 2].map(|version| Event::Published { version });
        assert_eq!(events.try_iter().collect::<Vec<_>>(), [&expected[..], &[Event::Over(Over::Closed)]].concat());
        assert_eq!(shared.next_event().expect("here"), None);
    }

    #[test]
    fn the_first_end_stays() {
        let shared = Shared::<()>::new("a handle".to_owned(), ()).expect("an eventfd");
        shared.end(Over::Evicted);
        shared.end(Over::Closed);
        assert_eq!(shared.lock().over(), Some(&Over::Evicted));
        assert_eq!(shared.next_event().expect("here"), Some(Event::Over(Over::Evicted)));
        assert_eq!(shared.next_event().expect("here"), None);
        let late = shared.wait(Duration::from_millis(1), |_| None::<Result<()>>);
        assert!(matches!(late, Err(Error::Timeout)), "{late:?}");
    }
}
