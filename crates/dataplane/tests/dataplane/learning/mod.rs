//! An edge that has no record of a group learns it from the lists in its packets (D17).

mod bench;
mod bounds;
mod lists;
mod random;
mod records;
