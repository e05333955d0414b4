//! Conformance tests for any device.
//!
//! A [`Profile`] has the configuration of a device and [cases](Case): frames to send to it, and the frames that it must
//! send. A [`Device`] takes frames and gives frames: a command that turns captures into captures, or interfaces.
//! [`run`] runs the cases on it, compares every octet, and reports verdicts by case and by requirement.
//!
//! The slow reference models of `srdma-testkit` compute the expected frames. They share nothing with the dataplane; the
//! tests compare them with captures of other implementations.

mod case;
mod compare;
mod description;
mod expected;
mod fields;
mod known;
mod mac;
mod octets;
pub mod page;
mod parameters;
pub mod profile;
mod report;
mod requirement;
mod run;
mod sources;
pub mod text;
mod transport;

pub use case::{Case, Frame, Step};
pub use compare::{Difference, Finding, compare};
pub use description::Description;
pub use expected::{Expected, Remade};
pub use fields::{Field, fields, summary};
pub use known::Departure;
pub use mac::Mac;
pub use parameters::{Parameter, Port};
pub use profile::{PROFILES, Profile, ProfileName};
pub use report::{CaseReport, Report, RequirementReport, Verdict};
pub use requirement::Requirement;
pub use run::{Progress, run};
pub use transport::{CommandDevice, Device, DeviceError, InterfaceDevice};
