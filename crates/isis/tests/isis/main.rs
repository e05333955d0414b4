//! The tests of `srdma-isis`.

mod attacker;
mod bad_input;
mod document;
mod golden;
mod golden_lan;
mod network;
mod overload;
mod purges;
mod recorded;
