//! Properties for any values and any octets.

mod any_octets;
mod incremental;
mod round_trips;
