//! Octets of a party that have come and are no message yet.

use crate::key::Key;
use crate::message::{DONE, Kind};
use crate::refusal::Problem;

/// At most a key and the last message, which a server sends at once behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox {
    octets: Vec<u8>,
}

impl Inbox {
    const MOST: usize = Key::LEN + DONE.len();

    pub(crate) fn push(&mut self, octets: &[u8]) -> Result<(), Problem> {
        if self.octets.len() + octets.len() > Self::MOST {
            return Err(Problem::OutOfTurn);
        }
        self.octets.extend_from_slice(octets);
        Ok(())
    }

    /// What has come.
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Takes a message, if it has come whole.
    pub(crate) fn take(&mut self, kind: Kind) -> Result<Option<Vec<u8>>, Problem> {
        match kind {
            // They are shorter than what is waited for.
            Kind::Key if Key::is_without_gid(&self.octets) => return Err(Problem::NoGid),
            Kind::Key | Kind::Version | Kind::Size | Kind::PathMtu | Kind::Figure | Kind::Done => {}
        }
        if self.octets.len() < kind.octets() {
            return Ok(None);
        }
        let rest = self.octets.split_off(kind.octets());
        Ok(Some(std::mem::replace(&mut self.octets, rest)))
    }
}
