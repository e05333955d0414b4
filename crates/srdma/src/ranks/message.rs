//! Messages between the owner of a host's receiver and the other ranks, over a Unix socket (D199).
//!
//! ```text
//!    0       4      5        8
//!   ┌───────┬──────┬────────┬──────────────┐
//!   │ octets│ kind │ 0      │ body         │     `octets` counts the body; integers are in network byte order
//!   └───────┴──────┴────────┴──────────────┘
//! ```
//!
//! A peer is another process: any octets may come. What is kept of a peer that sends a message in pieces is bounded by
//! the longest message.

use crate::error::Over;
use crate::manifest::{MAX_MANIFEST_OCTETS, Manifest, ManifestError, Message};
use std::sync::Arc;

const MAGIC: [u8; 4] = *b"SRVR";
const FORM: u8 = 1;
const HEAD_OCTETS: usize = 8;
/// The longest text, octets of UTF-8. A longer one is cut.
const MAX_TEXT_OCTETS: usize = 1024;
/// The longest body that an owner reads.
const MAX_TO_OWNER_OCTETS: usize = 8;

/// Why octets are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RankMessageError {
    #[error("a message has {found} octets, at most {most}")]
    TooLong { found: usize, most: usize },
    #[error("message {0} is not known")]
    Kind(u8),
    #[error("message {kind} has {octets} octets, which is not its length")]
    Length { kind: u8, octets: usize },
    #[error("the peer is none of this library")]
    Magic,
    #[error("form {0} of the messages is not known")]
    Form(u8),
    #[error("message {kind} has code {code}, which is not known")]
    Code { kind: u8, code: u8 },
    #[error("a text is no UTF-8")]
    Text,
    #[error("{0}")]
    Manifest(#[from] ManifestError),
}

/// Why the owner detaches a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Detach {
    /// It has not answered for five seconds: its process was stopped, or its library does not run.
    #[error("it did not answer in time")]
    Unanswered,
    /// It does not read its messages.
    #[error("it did not read its messages")]
    QueueFull,
    /// It has sent what does not follow the form, or is out of place.
    #[error("its messages do not follow the form")]
    Protocol,
    /// The host has too many ranks.
    #[error("the host has too many ranks")]
    TooMany,
}

impl Detach {
    const ALL: [Detach; 4] = [Detach::Unanswered, Detach::QueueFull, Detach::Protocol, Detach::TooMany];

    fn code(self) -> u8 {
        match self {
            Detach::Unanswered => 1,
            Detach::QueueFull => 2,
            Detach::Protocol => 3,
            Detach::TooMany => 4,
        }
    }
}

/// Why the receiver of the host has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    GroupClosed,
    Evicted,
    Refused(String),
    QueuePair(String),
    Socket(String),
    Device(String),
}

impl End {
    /// The end of a receiver. `None` if its handle was closed: then another rank takes over.
    pub(crate) fn of(over: &Over) -> Option<Self> {
        match over {
            Over::GroupClosed => Some(End::GroupClosed),
            Over::Evicted => Some(End::Evicted),
            Over::Refused(text) => Some(End::Refused(text.clone())),
            Over::QueuePair(text) => Some(End::QueuePair(text.clone())),
            Over::Socket(text) => Some(End::Socket(text.clone())),
            Over::Device(text) => Some(End::Device(text.clone())),
            Over::Closed | Over::Detached(_) | Over::NoOwner(_) => None,
        }
    }

    fn parts(&self) -> (u8, &str) {
        match self {
            End::GroupClosed => (1, ""),
            End::Evicted => (2, ""),
            End::Refused(text) => (3, text),
            End::QueuePair(text) => (4, text),
            End::Socket(text) => (5, text),
            End::Device(text) => (6, text),
        }
    }

    fn from_parts(code: u8, text: String) -> Option<Self> {
        Some(match code {
            1 => End::GroupClosed,
            2 => End::Evicted,
            3 => End::Refused(text),
            4 => End::QueuePair(text),
            5 => End::Socket(text),
            6 => End::Device(text),
            _ => return None,
        })
    }
}

impl From<End> for Over {
    fn from(end: End) -> Self {
        match end {
            End::GroupClosed => Over::GroupClosed,
            End::Evicted => Over::Evicted,
            End::Refused(text) => Over::Refused(text),
            End::QueuePair(text) => Over::QueuePair(text),
            End::Socket(text) => Over::Socket(text),
            End::Device(text) => Over::Device(text),
        }
    }
}

/// A message of the owner to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToRank {
    /// The first one: the region, whose descriptor comes with it.
    Region { octets: u64 },
    /// The group has the receiver.
    Joined,
    /// A version is whole.
    Version(Arc<Manifest>),
    /// A version will never be visible.
    Rejected { version: Option<u64>, why: String },
    /// The controller does not hear of the source any more.
    SourceSilent,
    /// The receiver has ended.
    Over(End),
    /// The rank is detached: nothing that it sends from now on is read.
    Detached(Detach),
    /// The owner has closed its handle, and nothing writes to the region any more: what was offered is the rank's.
    Ended,
}

/// A message of a rank to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToOwner {
    /// The first one.
    Attach,
    /// The rank has the version, until it says that it has dropped it.
    Taken(u64),
    /// The rank has dropped the version, or does not want it.
    Released(u64),
    /// No more versions are wanted. Those that were taken are still dropped one by one.
    Leave,
}

const ATTACH: u8 = 1;
const TAKEN: u8 = 2;
const RELEASED: u8 = 3;
const LEAVE: u8 = 4;
const REGION: u8 = 16;
const JOINED: u8 = 17;
const VERSION: u8 = 18;
const REJECTED: u8 = 19;
const SOURCE_SILENT: u8 = 20;
const OVER: u8 = 21;
const DETACHED: u8 = 22;
const ENDED: u8 = 23;

fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let octets: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(HEAD_OCTETS + octets);
    frame.extend_from_slice(&(octets as u32).to_be_bytes());
    frame.extend_from_slice(&[kind, 0, 0, 0]);
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

fn greeting() -> [u8; 8] {
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, FORM, 0, 0, 0]
}

/// As much of a text as a message may have.
fn cut(text: &str) -> &[u8] {
    text.as_bytes().get(..text.floor_char_boundary(MAX_TEXT_OCTETS)).unwrap_or_default()
}

impl ToRank {
    /// Its octets.
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            ToRank::Region { octets } => frame(REGION, &[&greeting(), &octets.to_be_bytes()]),
            ToRank::Joined => frame(JOINED, &[]),
            ToRank::Version(manifest) => frame(VERSION, &[&manifest.emit()]),
            ToRank::Rejected { version, why } => {
                let number = version.unwrap_or(0).to_be_bytes();
                frame(REJECTED, &[&[u8::from(version.is_some()), 0, 0, 0], &number, cut(why)])
            }
            ToRank::SourceSilent => frame(SOURCE_SILENT, &[]),
            ToRank::Over(end) => {
                let (code, text) = end.parts();
                frame(OVER, &[&[code, 0, 0, 0], cut(text)])
            }
            ToRank::Detached(why) => frame(DETACHED, &[&[why.code(), 0, 0, 0]]),
            ToRank::Ended => frame(ENDED, &[]),
        }
    }

    fn parse(kind: u8, body: &[u8]) -> Result<Self, RankMessageError> {
        let length = RankMessageError::Length { kind, octets: body.len() };
        match kind {
            REGION => {
                let (first, octets) = body.split_at_checked(8).ok_or(length.clone())?;
                check_greeting(first)?;
                Ok(ToRank::Region { octets: u64::from_be_bytes(octets.try_into().map_err(|_| length)?) })
            }
            VERSION => match Message::parse(body)? {
                Message::Begin(manifest) => Ok(ToRank::Version(Arc::new(manifest))),
                Message::End(_) => Err(ManifestError::Magic.into()),
            },
            REJECTED => {
                let (flags, rest) = body.split_first_chunk::<4>().ok_or(length.clone())?;
                let (number, why) = rest.split_first_chunk::<8>().ok_or(length)?;
                let [has_version, ..] = *flags;
                let version = (has_version != 0).then_some(u64::from_be_bytes(*number));
                Ok(ToRank::Rejected { version, why: text(kind, why)? })
            }
            OVER => {
                let ([code, ..], rest) = body.split_first_chunk::<4>().ok_or(length)?;
                let unknown = RankMessageError::Code { kind, code: *code };
                Ok(ToRank::Over(End::from_parts(*code, text(kind, rest)?).ok_or(unknown)?))
            }
            DETACHED => {
                let [code, ..]: [u8; 4] = body.try_into().map_err(|_| length)?;
                let why = Detach::ALL.into_iter().find(|why| why.code() == code);
                Ok(ToRank::Detached(why.ok_or(RankMessageError::Code { kind, code })?))
            }
            JOINED | SOURCE_SILENT | ENDED if !body.is_empty() => Err(length),
            JOINED => Ok(ToRank::Joined),
            ENDED => Ok(ToRank::Ended),
            SOURCE_SILENT => Ok(ToRank::SourceSilent),
            _ => Err(RankMessageError::Kind(kind)),
        }
    }
}

impl ToOwner {
    /// Its octets.
    pub(crate) fn emit(&self) -> Vec<u8> {
        match self {
            ToOwner::Attach => frame(ATTACH, &[&greeting()]),
            ToOwner::Taken(version) => frame(TAKEN, &[&version.to_be_bytes()]),
            ToOwner::Released(version) => frame(RELEASED, &[&version.to_be_bytes()]),
            ToOwner::Leave => frame(LEAVE, &[]),
        }
    }

    fn parse(kind: u8, body: &[u8]) -> Result<Self, RankMessageError> {
        let length = RankMessageError::Length { kind, octets: body.len() };
        let number = || body.try_into().map(u64::from_be_bytes).map_err(|_| length.clone());
        match kind {
            ATTACH => check_greeting(body).map(|()| ToOwner::Attach),
            TAKEN => Ok(ToOwner::Taken(number()?)),
            RELEASED => Ok(ToOwner::Released(number()?)),
            LEAVE if body.is_empty() => Ok(ToOwner::Leave),
            LEAVE => Err(length),
            _ => Err(RankMessageError::Kind(kind)),
        }
    }
}

fn check_greeting(octets: &[u8]) -> Result<(), RankMessageError> {
    match octets.split_first_chunk::<4>() {
        Some((&MAGIC, &[FORM, _, _, _])) => Ok(()),
        Some((&MAGIC, &[form, _, _, _])) => Err(RankMessageError::Form(form)),
        Some(_) | None => Err(RankMessageError::Magic),
    }
}

fn text(kind: u8, octets: &[u8]) -> Result<String, RankMessageError> {
    if octets.len() > MAX_TEXT_OCTETS {
        return Err(RankMessageError::Length { kind, octets: octets.len() });
    }
    String::from_utf8(octets.to_vec()).map_err(|_| RankMessageError::Text)
}

/// Octets of a peer that come in pieces.
#[derive(Debug)]
pub(crate) struct Frames {
    octets: Vec<u8>,
    most_octets: usize,
}

impl Frames {
    /// Those that ranks send.
    pub(crate) fn of_ranks() -> Self {
        Frames { octets: Vec::new(), most_octets: MAX_TO_OWNER_OCTETS }
    }

    /// Those that owners send.
    pub(crate) fn of_owner() -> Self {
        Frames { octets: Vec::new(), most_octets: MAX_MANIFEST_OCTETS }
    }

    /// Adds what has come. Messages are to be taken before more is added.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// The next message of a rank, if it is complete.
    pub(crate) fn next_to_owner(&mut self) -> Result<Option<ToOwner>, RankMessageError> {
        self.next(ToOwner::parse)
    }

    /// The next message of an owner, if it is complete.
    pub(crate) fn next_to_rank(&mut self) -> Result<Option<ToRank>, RankMessageError> {
        self.next(ToRank::parse)
    }

    fn next<T>(
        &mut self,
        parse: impl FnOnce(u8, &[u8]) -> Result<T, RankMessageError>,
    ) -> Result<Option<T>, RankMessageError> {
        let Some((head, rest)) = self.octets.split_first_chunk::<HEAD_OCTETS>() else { return Ok(None) };
        let [a, b, c, d, kind, ..] = *head;
        let (found, most) = (u32::from_be_bytes([a, b, c, d]) as usize, self.most_octets);
        if found > most {
            return Err(RankMessageError::TooLong { found, most });
        }
        let Some(body) = rest.get(..found) else { return Ok(None) };
        let message = parse(kind, body)?;
        self.octets.drain(..HEAD_OCTETS + found);
        Ok(Some(message))
    }
}

/// Any octets as messages to an owner and as messages to a rank, up to the first that does not follow the form: those
/// that are accepted, as they are emitted.
#[doc(hidden)]
pub fn rank_messages(octets: &[u8]) -> [Vec<u8>; 2] {
    let (mut to_owner, mut to_rank) = (Frames::of_ranks(), Frames::of_owner());
    let [mut of_ranks, mut of_owner] = [Vec::new(), Vec::new()];
    to_owner.push(octets);
    while let Ok(Some(message)) = to_owner.next_to_owner() {
        of_ranks.extend(message.emit());
    }
    to_rank.push(octets);
    while let Ok(Some(message)) = to_rank.next_to_rank() {
        of_owner.extend(message.emit());
    }
    [of_ranks, of_owner]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DigestKind, Entry, Slots};
    use proptest::prelude::*;

    fn manifest() -> Arc<Manifest> {
        let entry = Entry { name: "weights".to_owned(), region: 0, offset: 64, length_octets: 100 };
        let slots = Slots { count: 3, octets: 4096 };
        Arc::new(Manifest::new(9, 4, slots, DigestKind::Crc32, vec![entry]).expect("it fits"))
    }

    fn all_to_rank() -> Vec<ToRank> {
        let mut all = vec![
            ToRank::Region { octets: 12_288 },
            ToRank::Joined,
            ToRank::Version(manifest()),
            ToRank::Rejected { version: Some(7), why: "damaged".to_owned() },
            ToRank::Rejected { version: None, why: String::new() },
            ToRank::SourceSilent,
            ToRank::Ended,
        ];
        all.extend((1..=6).map(|code| {
            let text = if code > 2 { "größer".to_owned() } else { String::new() };
            ToRank::Over(End::from_parts(code, text).expect("a code"))
        }));
        all.extend(Detach::ALL.map(ToRank::Detached));
        all
    }

    /// D199: the octets of `docs/applications.md`.
    #[test]
    fn the_octets_are_those_of_the_document() {
        assert_eq!(ToOwner::Attach.emit(), *b"\0\0\0\x08\x01\0\0\0SRVR\x01\0\0\0");
        assert_eq!(ToOwner::Taken(258).emit(), *b"\0\0\0\x08\x02\0\0\0\0\0\0\0\0\0\x01\x02");
        assert_eq!(ToOwner::Released(1).emit(), *b"\0\0\0\x08\x03\0\0\0\0\0\0\0\0\0\0\x01");
        assert_eq!(ToOwner::Leave.emit(), *b"\0\0\0\0\x04\0\0\0");
        let region = ToRank::Region { octets: 4096 }.emit();
        assert_eq!(region, *b"\0\0\0\x10\x10\0\0\0SRVR\x01\0\0\0\0\0\0\0\0\0\x10\0");
        assert_eq!(ToRank::Detached(Detach::Protocol).emit(), *b"\0\0\0\x04\x16\0\0\0\x03\0\0\0");
        assert_eq!(ToRank::Over(End::Refused("no".to_owned())).emit(), *b"\0\0\0\x06\x15\0\0\0\x03\0\0\0no");
    }

    #[test]
    fn messages_come_in_any_pieces() {
        let octets: Vec<u8> = all_to_rank().iter().flat_map(ToRank::emit).collect();
        for piece in [1, 3, 7, octets.len()] {
            let mut frames = Frames::of_owner();
            let mut found = Vec::new();
            for part in octets.chunks(piece) {
                frames.push(part);
                while let Some(message) = frames.next_to_rank().expect("well-formed") {
                    found.push(message);
                }
            }
            assert_eq!(found, all_to_rank(), "pieces of {piece}");
        }
    }

    #[test]
    fn what_does_not_follow_the_form_is_named() {
        let to_owner = |octets: &[u8]| {
            let mut frames = Frames::of_ranks();
            frames.push(octets);
            frames.next_to_owner().expect_err("refused")
        };
        assert_eq!(to_owner(&frame(ATTACH, &[b"HTTP/1.1"])), RankMessageError::Magic);
        assert_eq!(to_owner(&frame(ATTACH, &[b"SRVR\x02\0\0\0"])), RankMessageError::Form(2));
        assert_eq!(to_owner(&frame(TAKEN, &[&[1; 4]])), RankMessageError::Length { kind: 2, octets: 4 });
        assert_eq!(to_owner(&frame(LEAVE, &[&[0]])), RankMessageError::Length { kind: 4, octets: 1 });
        assert_eq!(to_owner(&frame(JOINED, &[])), RankMessageError::Kind(JOINED));
        let long = RankMessageError::TooLong { found: u32::MAX as usize, most: 8 };
        assert_eq!(to_owner(&[0xFF; 8]), long, "before anything of it is kept");
        let to_rank = |octets: &[u8]| {
            let mut frames = Frames::of_owner();
            frames.push(octets);
            frames.next_to_rank().expect_err("refused")
        };
        assert_eq!(to_rank(&frame(DETACHED, &[&[9, 0, 0, 0]])), RankMessageError::Code { kind: DETACHED, code: 9 });
        assert_eq!(to_rank(&frame(OVER, &[&[0, 0, 0, 0]])), RankMessageError::Code { kind: OVER, code: 0 });
        assert_eq!(to_rank(&frame(OVER, &[&[3, 0, 0, 0], &[0xFF]])), RankMessageError::Text);
        let long = RankMessageError::Length { kind: OVER, octets: 1025 };
        assert_eq!(to_rank(&frame(OVER, &[&[3, 0, 0, 0], &[b'a'; 1025]])), long);
        assert_eq!(
            to_rank(&frame(VERSION, &[b"SRVB\x01\x02"])).to_string(),
            "the message is 6 octets long, its fields 8"
        );
        assert_eq!(to_rank(&ToOwner::Leave.emit()), RankMessageError::Kind(LEAVE));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let why = "ü".repeat(600);
        let mut frames = Frames::of_owner();
        frames.push(&ToRank::Rejected { version: None, why: format!("x{why}") }.emit());
        let Ok(Some(ToRank::Rejected { why: found, .. })) = frames.next_to_rank() else { panic!("a rejection") };
        assert_eq!(found, format!("x{}", "ü".repeat(511)));
    }

    proptest! {
        /// What is accepted means the same when it is emitted and read again.
        #[test]
        fn any_octets_are_read_or_named(octets in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u8..30) {
            for octets in [frame(kind, &[&octets]), octets] {
                let emitted = rank_messages(&octets);
                prop_assert_eq!(&rank_messages(&emitted[0])[0], &emitted[0]);
                prop_assert_eq!(&rank_messages(&emitted[1])[1], &emitted[1]);
            }
        }
    }
}
