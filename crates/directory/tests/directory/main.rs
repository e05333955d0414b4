//! Directories, message by message: joins at any time, ends at any time, damage, and lists that are refused.

mod lists;
mod transfers;
