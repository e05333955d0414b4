//! The words that went, as docs/glossary.md has them. A word that is right elsewhere is refused only in some kinds or
//! places: a part, a line or a search may be just that.

use super::{Entry, Kind};

pub(super) const TEXT: &[Kind] = &[Kind::Text];

/// Everything but prose.
pub(super) const NAMES: &[Kind] = &[Kind::File, Kind::Type, Kind::Function, Kind::Name, Kind::Flag, Kind::Key];

pub(super) const ALL: &[Kind] =
    &[Kind::File, Kind::Type, Kind::Function, Kind::Name, Kind::Flag, Kind::Key, Kind::Text];

/// Where every word of the table has gone.
const CLEAN: &[&str] = &["xtask/"];

pub(super) const TABLE: &[Entry] = &[
    Entry {
        words: &["whoever", "somebody", "nobody", "what is told", "who is asked", "that which"],
        kinds: TEXT,
        places: CLEAN,
        instead: "the subject's name: the caller, a peer, no node",
    },
    Entry { words: &["deed", "deeds"], kinds: ALL, places: CLEAN, instead: "recovery snapshot" },
    Entry { words: &["wish", "wishes"], kinds: ALL, places: CLEAN, instead: "eviction request" },
    Entry { words: &["node part", "node parts"], kinds: NAMES, places: CLEAN, instead: "group entry" },
];
