//! Tests of the machine from outside.

mod completed;
mod damaged;
mod epochs;
mod long_round_trip;
mod not_ready;
