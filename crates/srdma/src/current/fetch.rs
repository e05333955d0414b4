//! The receiver's side: a thread that fetches the current version, and passes it on in pieces.

use super::{HEAD_OCTETS, Key, MAC_OCTETS, NONCE_OCTETS, OF_REQUEST, OF_VERSION, PIECE_OCTETS, Status, TIMEOUT, head};
use crate::digest::Hasher;
use crate::manifest::{MAX_MANIFEST_OCTETS, Manifest, ManifestError, Message};
use hmac::Mac;
use srdma_api::Client;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

/// Attempts at a source that is busy or not reached, and the wait after the first.
const ATTEMPTS: u32 = 4;
const RETRY: Duration = Duration::from_millis(200);

/// Why the current version was not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FetchError {
    #[error("the source is not reached: {0}")]
    Unreachable(String),
    #[error("the source serves too many receivers")]
    Busy,
    #[error("the source does not know the key of the controller: it has started again, or is another program")]
    Key,
    #[error("the connection has ended in the middle: {0}")]
    Broken(String),
    #[error("the response is not one of a source of this library")]
    Response,
    #[error("the digest of buffer {0:?} is wrong")]
    Damaged(String),
    #[error("{0}")]
    Message(#[from] ManifestError),
    #[error("the group has one slot, which the next version needs")]
    OneSlot,
}

/// A part of the version, in order.
#[derive(Debug)]
pub(crate) enum Piece {
    Begin(Manifest),
    /// Octets behind an offset in the slot of a region.
    Octets {
        region: u8,
        offset: u64,
        octets: Vec<u8>,
    },
    /// All octets are there, with the digests of the source.
    End,
    /// It does not come. Without an error a later version has been published, which comes with the group, or there
    /// was none.
    Failed(Option<FetchError>),
}

/// Where to fetch it.
pub(crate) struct Fetch {
    pub(crate) client: Client,
    pub(crate) group: u32,
}

/// How a fetch ends: without an error there is nothing to fetch, or the receiver takes no more.
type Outcome = std::result::Result<(), Option<FetchError>>;

impl Fetch {
    /// Fetches the version; `wake` is called after each piece.
    pub(crate) fn run(&self, pieces: &SyncSender<Piece>, wake: impl Fn()) {
        let pass = |piece| {
            let passed = pieces.send(piece).map_err(|_| None);
            wake();
            passed
        };
        for attempt in 1.. {
            let error = match self.attempt(&pass) {
                Ok(()) => return,
                Err(error) => error,
            };
            if let Some(error) = &error {
                tracing::info!("receiver of group {}: the current version, attempt {attempt}: {error}", self.group);
            }
            if attempt < ATTEMPTS && matches!(error, Some(FetchError::Unreachable(_) | FetchError::Busy)) {
                thread::sleep(RETRY * 2_u32.pow(attempt - 1));
                continue;
            }
            let _: Outcome = pass(Piece::Failed(error));
            return;
        }
    }

    fn attempt(&self, pass: &impl Fn(Piece) -> Outcome) -> Outcome {
        let group = self.client.group(self.group).map_err(|error| Some(FetchError::Unreachable(error.to_string())))?;
        let Some(service) = group.service else { return Err(None) };
        let key = Key::parse(&service.key).ok_or(Some(FetchError::Key))?;
        fetch((group.source.address, service.port).into(), &key, pass)
    }
}

/// Fetches the version of a source.
pub(super) fn fetch(source: SocketAddr, key: &Key, pass: &impl Fn(Piece) -> Outcome) -> Outcome {
    let unreachable = |error: std::io::Error| Some(FetchError::Unreachable(error.to_string()));
    let mut stream = TcpStream::connect_timeout(&source, TIMEOUT).map_err(unreachable)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(unreachable)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(unreachable)?;
    let greeting: [u8; HEAD_OCTETS + NONCE_OCTETS] = array(&mut stream).map_err(unreachable)?;
    let (found, nonce) = greeting.split_at(HEAD_OCTETS);
    if found != head() {
        return Err(Some(FetchError::Response));
    }
    let mut request = head().to_vec();
    request.extend_from_slice(&key.mac(OF_REQUEST, &[nonce, &head()]).finalize().into_bytes());
    stream.write_all(&request).map_err(unreachable)?;
    // A source that does not know the key ends the connection.
    let [status, ..] = array::<8>(&mut stream).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => Some(FetchError::Key),
        _ => Some(FetchError::Broken(error.to_string())),
    })?;
    match Status::from_code(status) {
        Some(Status::Version) => {}
        Some(Status::Nothing) => return Err(None),
        Some(Status::Busy) => return Err(Some(FetchError::Busy)),
        None => return Err(Some(FetchError::Response)),
    }
    let begin = message(&mut stream)?;
    let Message::Begin(manifest) = Message::parse(&begin).map_err(|error| Some(error.into()))? else {
        return Err(Some(FetchError::Response));
    };
    pass(Piece::Begin(manifest.clone()))?;
    let mut digests = Vec::with_capacity(manifest.buffers().len());
    for entry in manifest.buffers() {
        let mut hasher = Hasher::new(manifest.digest());
        let mut done = 0;
        while done < entry.length_octets {
            let length = (entry.length_octets - done).min(PIECE_OCTETS as u64) as usize;
            let mut octets = vec![0; length];
            stream.read_exact(&mut octets).map_err(|error| broken(&error))?;
            hasher.update(&octets);
            pass(Piece::Octets { region: entry.region, offset: entry.offset + done, octets })?;
            done += length as u64;
        }
        digests.push(hasher.finish());
    }
    let end = message(&mut stream)?;
    let Message::End(given) = Message::parse(&end).map_err(|error| Some(error.into()))? else {
        return Err(Some(FetchError::Response));
    };
    let mac: [u8; MAC_OCTETS] = array(&mut stream).map_err(|error| broken(&error))?;
    if key.mac(OF_VERSION, &[nonce, &begin, &end]).verify_slice(&mac).is_err() {
        return Err(Some(FetchError::Key));
    }
    if given.version != manifest.version() || given.digests.len() != digests.len() {
        return Err(Some(FetchError::Response));
    }
    let mut pairs = manifest.buffers().iter().zip(digests.iter().zip(&given.digests));
    match pairs.find(|(_, (found, given))| found != given) {
        Some((entry, _)) => Err(Some(FetchError::Damaged(entry.name.clone()))),
        None => pass(Piece::End),
    }
}

/// A source whose version is replaced ends the connection between two octets: then the later one comes with the group.
fn broken(error: &std::io::Error) -> Option<FetchError> {
    match error.kind() {
        ErrorKind::UnexpectedEof => None,
        _ => Some(FetchError::Broken(error.to_string())),
    }
}

fn array<const N: usize>(stream: &mut TcpStream) -> std::io::Result<[u8; N]> {
    let mut array = [0; N];
    stream.read_exact(&mut array)?;
    Ok(array)
}

/// A message behind its length, of at most the limit.
fn message(stream: &mut TcpStream) -> std::result::Result<Vec<u8>, Option<FetchError>> {
    let length = u32::from_be_bytes(array(stream).map_err(|error| broken(&error))?) as usize;
    if length > MAX_MANIFEST_OCTETS {
        return Err(Some(FetchError::Message(ManifestError::TooLong(length))));
    }
    let mut octets = vec![0; length];
    stream.read_exact(&mut octets).map_err(|error| broken(&error))?;
    Ok(octets)
}
