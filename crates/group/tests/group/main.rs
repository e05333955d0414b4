//! The group as a value: what makes one, what each node gets of it, and how its membership changes.

mod changes;
mod chaos;
mod conflicts;
mod figure_1;
mod fleet;
mod record;
mod resuming;
mod table;
