//! Who asks, and whether they may.

use crate::config::{Config, DEFAULT_TENANT, Role};
use crate::refusal::{Kind, Refusal};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// The name of the token.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// For the role `tenant`.
    pub(crate) tenant: Option<String>,
    /// The only node that it may be.
    pub(crate) node: Option<String>,
}

/// The tokens.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    tokens: Vec<([u8; 32], Who)>,
}

impl Access {
    pub(crate) fn new(config: &Config) -> Self {
        let tokens = config.token.iter().map(|token| {
            let who = Who {
                name: token.name.clone(),
                role: token.role,
                tenant: token.tenant.clone(),
                node: token.node.clone(),
            };
            (digest_of_hexadecimal(&token.sha256), who)
        });
        Access { tokens: tokens.collect() }
    }

    /// Who has this token. `None` is everybody where no tokens are configured.
    pub(crate) fn who(&self, token: Option<&str>) -> Result<Who, Refusal> {
        if self.tokens.is_empty() {
            return Ok(Who { name: "local".to_owned(), role: Role::Admin, tenant: None, node: None });
        }
        let Some(token) = token else {
            return Err(Refusal::new(Kind::NoToken, "expected the header `Authorization: Bearer TOKEN`"));
        };
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // All are compared, so that the time says nothing of which it was.
        let mut found = None;
        for (known, who) in &self.tokens {
            if bool::from(known.ct_eq(&digest)) {
                found = Some(who);
            }
        }
        found.cloned().ok_or_else(|| Refusal::new(Kind::UnknownToken, "the token is none of the configured ones"))
    }
}

impl Who {
    /// The tenant that a new group or job is of. `named`: the one that the request names, if it does.
    pub(crate) fn tenant_of_new(&self, named: Option<&str>) -> Result<String, Refusal> {
        match (self.role, &self.tenant) {
            (Role::Tenant, Some(own)) if named.is_none_or(|named| named == own) => Ok(own.clone()),
            (Role::Admin, _) => Ok(named.unwrap_or(DEFAULT_TENANT).to_owned()),
            (Role::Tenant | Role::Node | Role::Read, _) => Err(self.refusal("create groups or jobs here")),
        }
    }

    /// That it may change what belongs to this tenant.
    pub(crate) fn may_change(&self, tenant: &str) -> Result<(), Refusal> {
        match (self.role, &self.tenant) {
            (Role::Admin, _) => Ok(()),
            (Role::Tenant, Some(own)) if own == tenant => Ok(()),
            (Role::Tenant, _) => Err(self.other_tenant()),
            (Role::Node | Role::Read, _) => Err(self.refusal("change groups or jobs")),
        }
    }

    /// That it may look at what belongs to this tenant.
    pub(crate) fn may_see(&self, tenant: &str) -> Result<(), Refusal> {
        match (self.role, &self.tenant) {
            (Role::Admin | Role::Read, _) => Ok(()),
            (Role::Tenant, Some(own)) if own == tenant => Ok(()),
            (Role::Tenant, _) => Err(self.other_tenant()),
            (Role::Node, _) => Err(self.refusal("look at groups or jobs")),
        }
    }

    /// That it may look at the network.
    pub(crate) fn may_see_network(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Admin | Role::Read => Ok(()),
            Role::Tenant | Role::Node => Err(self.refusal("look at the network")),
        }
    }

    /// That it may change the network.
    pub(crate) fn may_operate(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Admin => Ok(()),
            Role::Tenant | Role::Node | Role::Read => Err(self.refusal("operate the network")),
        }
    }

    /// That it may be this node.
    pub(crate) fn may_be(&self, node: &str) -> Result<(), Refusal> {
        match (self.role, &self.node) {
            (Role::Admin, _) | (Role::Node, None) => Ok(()),
            (Role::Node, Some(own)) if own == node => Ok(()),
            (Role::Node, _) => Err(self.refusal(&format!("be node {node}"))),
            (Role::Tenant | Role::Read, _) => Err(self.refusal("be a node")),
        }
    }

    fn refusal(&self, what: &str) -> Refusal {
        Refusal::new(Kind::NotAllowed, format!("token {} may not {what}", self.name))
    }

    fn other_tenant(&self) -> Refusal {
        Refusal::new(Kind::OtherTenant, format!("token {} is of another tenant", self.name))
    }
}

/// The digits are checked with the configuration.
fn digest_of_hexadecimal(text: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    for (octet, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
        *octet = digit(pair[0]) << 4 | pair.get(1).map_or(0, |low| digit(*low));
    }
    digest
}
