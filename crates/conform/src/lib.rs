//! Conformance tests for any device.
//!
//! A [`Profile`] says how a device has to be configured and has [cases](Case): frames to send to it, and what must come
//! out. A [`Device`] is whatever takes frames and gives frames: a command that turns captures into captures, or
//! interfaces. [`run`] puts the cases to it and judges each by each octet, and by requirement.
//!
//! What must come out is computed by the slow reference models of `srdma-testkit`, which share nothing with the
//! dataplane, and is held against captures of other implementations in the tests.

mod case;
mod expected;
mod fields;
mod judge;
mod known;
mod mac;
mod octets;
mod parameters;
pub mod profile;
mod report;
mod requirement;
mod run;
mod transport;

pub use case::{Case, Frame, Step};
pub use expected::{Expected, Remade};
pub use fields::{Field, fields, summary};
pub use judge::{Difference, Finding, judge};
pub use known::Departure;
pub use mac::Mac;
pub use parameters::{Parameter, Port};
pub use profile::{PROFILES, Profile, ProfileName};
pub use report::{CaseReport, Report, RequirementReport, Verdict};
pub use requirement::Requirement;
pub use run::{Progress, run};
pub use transport::{CommandDevice, Device, DeviceError, InterfaceDevice};
