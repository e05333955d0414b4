//! The template of addresses toward one NIC: arithmetic where the fabric is regular, else each path by itself.

use super::{Template, ValueError};
use crate::path::Path;
use crate::program::{Encoding, Program, ProgramError};
use crate::sid::SidPlan;
use crate::topology::HostId;
use srdma_wire::Entropy;
use srdma_wire::entropy::{AddressTemplate, Choice, TemplateError};
use std::net::Ipv6Addr;

/// A path with its value and its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPath {
    /// Its value.
    pub entropy: Entropy,
    /// Its links.
    pub path: Path,
    /// The outer headers of its packets.
    pub program: Program,
}

/// Reason for which addresses toward a NIC have no template. The paths have values all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A path has no value or no program.
    #[error(transparent)]
    Value(#[from] ValueError),
    #[allow(missing_docs, reason = "the name says it")]
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A path needs an SRH.
    #[error("the paths need an SRH: list them one by one")]
    NeedsSrh,
    /// Addresses are not a sum of steps.
    #[error("the addresses are no base with a step for each choice: list the paths one by one")]
    Irregular,
    /// The template is not valid.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl Template {
    /// All paths between two NICs with their programs, in the order of their values.
    ///
    /// # Errors
    ///
    /// Those of [`Template::paths`] and [`Program::encode`].
    pub fn listed(
        &self,
        sids: &SidPlan,
        [from, to]: [HostId; 2],
        encoding: Encoding,
        tenant: Option<u16>,
    ) -> Result<Vec<ListedPath>, AddressError> {
        let listed = |(entropy, path): (Entropy, Path)| {
            let program = Program::encode(sids, &self.topology, &path, encoding, tenant)?;
            Ok(ListedPath { entropy, path, program })
        };
        self.paths(from, to)?.into_iter().map(listed).collect()
    }

    /// The template of the addresses of these paths, which are all between two NICs: expanding each value gives the
    /// address of its program.
    ///
    /// # Errors
    ///
    /// The addresses do not follow from the values by arithmetic.
    pub fn addresses(&self, listed: &[ListedPath]) -> Result<AddressTemplate, AddressError> {
        let address = |content: &[u32]| {
            let fields = self.fields().zip(content);
            let value = fields.map(|(field, content)| field.value(*content)).fold(0, |value, part| value | part);
            let found = listed.binary_search_by_key(&Entropy(value), |own| own.entropy).ok()?;
            Some(u128::from(listed[found].program.destination))
        };
        if listed.iter().any(|own| !own.program.segments.is_empty()) {
            return Err(AddressError::NeedsSrh);
        }
        let mut content = vec![0; self.fields().count()];
        let base = address(&content).ok_or(AddressError::Irregular)?;
        let mut choices = Vec::new();
        for (position, field) in self.fields().enumerate() {
            let most = listed.iter().map(|own| field.of(own.entropy)).max().unwrap_or(0);
            let step = if most > 0 {
                content[position] = 1;
                let second = address(&content).ok_or(AddressError::Irregular)?;
                content[position] = 0;
                second.checked_sub(base).ok_or(AddressError::Irregular)?
            } else {
                0
            };
            choices.push(Choice { bits: field.bits as u8, choices: most + 1, step: step.into() });
        }
        let template = AddressTemplate::new(Ipv6Addr::from(base), &choices)?;
        let is_right = |own: &ListedPath| template.expand(own.entropy) == Ok(own.program.destination);
        if template.paths() != listed.len() as u64 || !listed.iter().all(is_right) {
            return Err(AddressError::Irregular);
        }
        Ok(template)
    }
}
