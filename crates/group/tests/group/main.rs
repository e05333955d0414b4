//! The group as a value: its conditions, the group entry of each node, and changes of its membership.

mod changes;
mod chaos;
mod conflicts;
mod figure_1;
mod fleet;
mod record;
mod regions;
mod reservations;
mod resuming;
mod table;
