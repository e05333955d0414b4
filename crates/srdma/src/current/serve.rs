//! The source's side: a listener, and a thread for each of a few receivers.

use super::{
    HEAD_OCTETS, Key, MAC_OCTETS, NONCE_OCTETS, OF_REQUEST, OF_VERSION, PIECE_OCTETS, Status, TIMEOUT, head, random,
};
use crate::digest::Digest;
use crate::engine;
use crate::error::{Error, Result};
use crate::manifest::{End, Manifest};
use crate::memory::Octets;
use hmac::Mac;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use srdma_api::SourceService;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Receivers that are served at a time. Each takes memory of [`PIECE_OCTETS`].
const MAX_RECEIVERS: usize = 8;
/// Connections at a time, those without a valid request included. Each takes a thread.
const MAX_CONNECTIONS: usize = 64;
/// Time for the whole request: a peer without the key holds a connection for no longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval for looking whether the source was closed, milliseconds.
const LOOK_MS: u16 = 100;

/// The version that was published last.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) manifest: Manifest,
    pub(crate) digests: Vec<Digest>,
    pub(crate) buffers: Vec<Octets>,
}

/// Serves the current version of a group. Dropping it ends all connections.
pub(crate) struct Server {
    state: Arc<State>,
    service: SourceService,
    thread: Option<JoinHandle<()>>,
}

struct State {
    key: Key,
    /// Locked for reading while a piece is copied: when it is replaced, nothing reads the former version any more.
    current: RwLock<Option<Current>>,
    is_closing: AtomicBool,
    connections: Arc<Places>,
    receivers: Arc<Places>,
}

struct Places {
    taken: AtomicUsize,
    most: usize,
}

/// A place that is taken, until it is dropped.
struct Place(Arc<Places>);

impl Places {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Places { taken: AtomicUsize::new(0), most })
    }

    /// `None` if all are taken.
    fn take(self: &Arc<Self>) -> Option<Place> {
        let taken = |taken| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken).ok().map(|_| Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    /// Listens at any port of an address.
    pub(crate) fn start(address: Ipv6Addr) -> Result<Self> {
        let system = |what| move |error| Error::System { what, error };
        let listener = TcpListener::bind((address, 0)).map_err(system("the TCP socket"))?;
        let port = listener.local_addr().map_err(system("the TCP socket"))?.port();
        let key = Key::new().map_err(system("/dev/urandom"))?;
        let service = SourceService { port, key: key.text() };
        let state = Arc::new(State {
            key,
            current: RwLock::new(None),
            is_closing: AtomicBool::new(false),
            connections: Places::new(MAX_CONNECTIONS),
            receivers: Places::new(MAX_RECEIVERS),
        });
        let own = Arc::clone(&state);
        let thread = engine::start("srdma current", move || own.listen(&listener))?;
        Ok(Server { state, service, thread: Some(thread) })
    }

    /// For the controller.
    pub(crate) fn service(&self) -> &SourceService {
        &self.service
    }

    /// Replaces the version. When it returns, nothing reads the buffers of the former one.
    pub(crate) fn replace(&self, current: Option<Current>) {
        // A panic of another thread leaves it valid: readers do not change it.
        let former =
            std::mem::replace(&mut *self.state.current.write().unwrap_or_else(PoisonError::into_inner), current);
        drop(former);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_closing.store(true, Ordering::Release);
        self.replace(None);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl State {
    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_closing() {
            let mut descriptors = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            // After an error, as of a signal, it looks again.
            if !matches!(poll(&mut descriptors, PollTimeout::from(LOOK_MS)), Ok(1..)) {
                continue;
            }
            let Ok((stream, _)) = listener.accept() else { continue };
            // One too many ends at once.
            let Some(place) = self.connections.take() else { continue };
            let own = Arc::clone(self);
            // Without a thread the connection ends, and its peer tries again.
            let _ = engine::start("srdma current", move || {
                let _place = place;
                // A receiver that goes away costs nothing; it knows why.
                let _ = own.serve(stream);
            });
        }
    }

    /// Serves one receiver. A request of another key ends without a word: it gets nothing but the greeting.
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_write_timeout(Some(TIMEOUT))?;
        let nonce = random()?;
        let mut greeting = [0; HEAD_OCTETS + NONCE_OCTETS];
        greeting[..HEAD_OCTETS].copy_from_slice(&head());
        greeting[HEAD_OCTETS..].copy_from_slice(&nonce);
        stream.write_all(&greeting)?;
        let mut request = [0; HEAD_OCTETS + MAC_OCTETS];
        read_within(&mut stream, &mut request, REQUEST_TIMEOUT)?;
        let (asked, mac) = request.split_at(HEAD_OCTETS);
        let is_known = self.key.mac(OF_REQUEST, &[&nonce, asked]).verify_slice(mac).is_ok();
        if !is_known || asked != head() {
            tracing::debug!("{:?} has asked for the current version by another key", stream.peer_addr());
            return Ok(());
        }
        let place = self.receivers.take();
        let found = place.as_ref().and_then(|_| self.messages());
        let status = match (&place, &found) {
            (None, _) => Status::Busy,
            (Some(_), Some(_)) => Status::Version,
            (Some(_), None) => Status::Nothing,
        };
        stream.write_all(&[status.code(), 0, 0, 0, 0, 0, 0, 0])?;
        let Some((manifest, begin, end)) = found else { return Ok(()) };
        send_message(&mut stream, &begin)?;
        let mut piece = vec![0; PIECE_OCTETS];
        for (index, entry) in manifest.buffers().iter().enumerate() {
            let mut done = 0;
            while done < entry.length_octets {
                let length = (entry.length_octets - done).min(PIECE_OCTETS as u64) as usize;
                if !self.copy(manifest.version(), index, done, &mut piece[..length]) {
                    // A later version is published, or the source is closed.
                    return Ok(());
                }
                stream.write_all(&piece[..length])?;
                done += length as u64;
            }
        }
        send_message(&mut stream, &end)?;
        let mac = self.key.mac(OF_VERSION, &[&nonce, &begin, &end]).finalize().into_bytes();
        stream.write_all(&mac)
    }

    /// The manifest, the begin and the end message of the current version.
    fn messages(&self) -> Option<(Manifest, Vec<u8>, Vec<u8>)> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Current { manifest, digests, .. } = current.as_ref()?;
        let end = End { version: manifest.version(), digest: manifest.digest(), digests: digests.clone() };
        Some((manifest.clone(), manifest.emit(), end.emit()))
    }

    /// Copies octets of a buffer; false if the version is not the current one any more.
    fn copy(&self, version: u64, buffer: usize, offset: u64, into: &mut [u8]) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let Some(current) = current.as_ref().filter(|current| current.manifest.version() == version) else {
            return false;
        };
        let Some(octets) = current.buffers.get(buffer) else { return false };
        octets.read(offset, into);
        true
    }
}

/// Fills `into`, however the octets are divided, before the time is over.
fn read_within(stream: &mut TcpStream, into: &mut [u8], time: Duration) -> std::io::Result<()> {
    let end = Instant::now() + time;
    let mut done = 0;
    while done < into.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut into[done..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            octets => done += octets,
        }
    }
    Ok(())
}

fn send_message(stream: &mut TcpStream, octets: &[u8]) -> std::io::Result<()> {
    stream.write_all(&(octets.len() as u32).to_be_bytes())?;
    stream.write_all(octets)
}
