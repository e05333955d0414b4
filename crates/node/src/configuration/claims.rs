//! Meaning of each address and prefix at the node. One prefix has one meaning.

use super::interfaces::Purpose;
use srdma_dataplane::TableId;
use srdma_fib::Fib;
use srdma_toml_error::{Problem, line_of};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::Ipv6Addr;

/// Whether packets to a prefix leave the node by an adjacency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To a neighbour.
    Out,
    /// To the node itself, into a tunnel, or nowhere.
    Elsewhere,
}

/// The prefixes that the sections so far have given a meaning.
pub(super) struct Claims<'t> {
    text: &'t str,
    purpose: Purpose<'t>,
    owners: BTreeMap<(TableId, Prefix), (usize, String)>,
    main: Fib<Leads>,
    /// The main table of IPv4.
    ipv4: Fib<Leads>,
}

impl<'t> Claims<'t> {
    /// For the file of this text.
    pub(super) fn new(text: &'t str, purpose: Purpose<'t>) -> Self {
        Claims { text, purpose, owners: BTreeMap::new(), main: Fib::default(), ipv4: Fib::default() }
    }

    /// Use of the configuration.
    pub(super) fn purpose(&self) -> Purpose<'t> {
        self.purpose
    }

    /// Gives a prefix of the main table its meaning: `owner`, at this offset of the file.
    pub(super) fn claim(
        &mut self,
        at: usize,
        prefix: Prefix,
        owner: impl Display,
        leads: Leads,
    ) -> Result<(), Problem> {
        self.claim_in(TableId(0), at, prefix, owner)?;
        self.main_of(prefix).insert(prefix, leads);
        Ok(())
    }

    /// The same in any table.
    pub(super) fn claim_in(
        &mut self,
        table: TableId,
        at: usize,
        prefix: Prefix,
        owner: impl Display,
    ) -> Result<(), Problem> {
        let owner = owner.to_string();
        if let Some((other_at, other)) = self.owners.get(&(table, prefix)) {
            let line = line_of(self.text, *other_at);
            return Err(Problem::new(at, format!("{prefix} cannot be {owner}: in line {line} it is {other}")));
        }
        self.owners.insert((table, prefix), (at, owner));
        Ok(())
    }

    /// A neighbour's address, which any later claim may give another meaning.
    pub(super) fn neighbour(&mut self, address: Ipv6Addr) {
        let prefix = Prefix::host(address);
        self.main_of(prefix).insert(prefix, Leads::Out);
    }

    /// The main table of the IP version of a prefix.
    fn main_of(&mut self, prefix: Prefix) -> &mut Fib<Leads> {
        if prefix.is_ipv4() { &mut self.ipv4 } else { &mut self.main }
    }

    fn lookup(&self, address: Ipv6Addr) -> Option<Leads> {
        let main = if address.to_ipv4_mapped().is_some() { &self.ipv4 } else { &self.main };
        main.lookup(&address.octets())
    }

    /// Section that gives a prefix of the main table its meaning, if there is one.
    pub(super) fn owner(&self, prefix: Prefix) -> Option<&str> {
        self.owners.get(&(TableId(0), prefix)).map(|(_, owner)| owner.as_str())
    }

    /// That packets to an address leave by an adjacency, or may do so when the node has learnt its routes; `what` has
    /// the address.
    pub(super) fn check_reachable(&self, at: usize, what: &str, address: Ipv6Addr) -> Result<(), Problem> {
        if self.purpose.learns() {
            return match (self.owner(Prefix::host(address)), self.lookup(address)) {
                (Some(owner), Some(Leads::Elsewhere)) => {
                    let address = address.to_canonical();
                    Err(Problem::new(at, format!("{what} {address} cannot be reached: it is {owner}")))
                }
                _ => Ok(()),
            };
        }
        match self.lookup(address) {
            Some(Leads::Out) => Ok(()),
            Some(Leads::Elsewhere) | None => {
                let address = address.to_canonical();
                Err(Problem::new(at, format!("{what} {address}: no neighbour and no route \"via\" leads there")))
            }
        }
    }
}
