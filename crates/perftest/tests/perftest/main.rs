//! The handshake with recorded conversations of unmodified tools, with what is wrong, and with parties that end.

mod ends;
mod garbage;
mod recorded;
mod recording;
mod refused;
mod table;
