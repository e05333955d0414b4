//! A controller's requests and the rows of its store: no octets make it panic, what it refuses changes nothing, and
//! what it has written it can start with.

mod draw;
mod rows;
mod script;
mod site;

pub use rows::rows;
pub use script::requests;
