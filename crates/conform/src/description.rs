//! A profile as data: what a device needs, and the cases, without their frames.

use crate::{Case, Parameter, Port, Profile};
use serde::Serialize;

/// A profile without the frames of its cases.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Description<'p> {
    pub name: &'static str,
    pub about: &'static str,
    ports: Vec<NamedPort>,
    /// The configuration of the device, a sentence each.
    configuration: &'p [String],
    parameters: &'p [Parameter],
    cases: Vec<DescribedCase<'p>>,
    untested: Vec<Untested>,
}

#[derive(Clone, Debug, Serialize)]
struct NamedPort {
    name: &'static str,
    #[serde(flatten)]
    port: Port,
}

#[derive(Clone, Debug, Serialize)]
struct DescribedCase<'p> {
    name: &'static str,
    about: &'static str,
    requirements: &'static [&'static str],
    sources: &'p [&'static str],
}

impl<'p> DescribedCase<'p> {
    fn of(case: &'p Case) -> Self {
        let Case { name, about, requirements, sources, .. } = case;
        DescribedCase { name, about, requirements, sources }
    }
}

/// A requirement that no case can show.
#[derive(Clone, Debug, Serialize)]
struct Untested {
    id: &'static str,
    reason: &'static str,
}

impl Profile {
    /// The profile without the frames of its cases.
    pub fn description(&self) -> Description<'_> {
        Description {
            name: self.name,
            about: self.about,
            ports: self.ports.iter().map(|&(name, port)| NamedPort { name, port }).collect(),
            configuration: &self.words,
            parameters: &self.parameters,
            cases: self.cases.iter().map(DescribedCase::of).collect(),
            untested: self.untested.iter().map(|&(id, reason)| Untested { id, reason }).collect(),
        }
    }
}
