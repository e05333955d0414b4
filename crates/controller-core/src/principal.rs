//! Principal of a request, and its permissions.

use crate::refusal::Refusal;
use crate::settings::DEFAULT_TENANT;
use serde::Deserialize;
use srdma_api::ProblemType;

/// The permissions of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    Admin,
    /// The groups and jobs of a tenant.
    Tenant,
    /// To register as a node.
    Node,
    /// To read everything.
    Read,
}

/// The holder of a token.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name of the token.
    pub name: String,
    pub role: Role,
    /// For the role `tenant`.
    pub tenant: Option<String>,
    /// The node that it may register, for the role `node`.
    pub node: Option<String>,
}

impl Principal {
    /// The tenant of a new group or job. `named`: the one in the request.
    pub(crate) fn tenant_of_new(&self, named: Option<&str>) -> Result<String, Refusal> {
        match (self.role, &self.tenant) {
            (Role::Tenant, Some(own)) if named.is_none_or(|named| named == own) => Ok(own.clone()),
            (Role::Admin, _) => Ok(named.unwrap_or(DEFAULT_TENANT).to_owned()),
            (Role::Tenant | Role::Node | Role::Read, _) => Err(self.refusal("create groups or jobs for this tenant")),
        }
    }

    /// Checks that it may change the groups and jobs of this tenant.
    pub(crate) fn may_change(&self, tenant: &str) -> Result<(), Refusal> {
        match (self.role, &self.tenant) {
            (Role::Admin, _) => Ok(()),
            (Role::Tenant, Some(own)) if own == tenant => Ok(()),
            (Role::Tenant, _) => Err(self.other_tenant()),
            (Role::Node | Role::Read, _) => Err(self.refusal("change groups or jobs")),
        }
    }

    /// Checks that it may read the groups and jobs of this tenant.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn may_read(&self, tenant: &str) -> Result<(), Refusal> {
        match (self.role, &self.tenant) {
            (Role::Admin | Role::Read, _) => Ok(()),
            (Role::Tenant, Some(own)) if own == tenant => Ok(()),
            (Role::Tenant, _) => Err(self.other_tenant()),
            (Role::Node, _) => Err(self.refusal("read groups or jobs")),
        }
    }

    /// Checks that it may change the groups and jobs of some tenant.
    pub(crate) fn may_change_some(&self) -> Result<(), Refusal> {
        self.may_change(self.tenant.as_deref().unwrap_or_default())
    }

    /// Checks that it may read the groups and jobs of some tenant.
    pub(crate) fn may_read_some(&self) -> Result<(), Refusal> {
        self.may_read(self.tenant.as_deref().unwrap_or_default())
    }

    /// Checks that it may read the state of the network.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn may_read_network(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Admin | Role::Read => Ok(()),
            Role::Tenant | Role::Node => Err(self.refusal("read the network")),
        }
    }

    /// Checks that it may open a stream of events; each event is then checked by its tenant.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn may_watch(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Admin | Role::Tenant | Role::Read => Ok(()),
            Role::Node => Err(self.refusal("read events")),
        }
    }

    /// Checks that it may change the network.
    ///
    /// # Errors
    ///
    /// It may not.
    pub fn may_operate(&self) -> Result<(), Refusal> {
        match self.role {
            Role::Admin => Ok(()),
            Role::Tenant | Role::Node | Role::Read => Err(self.refusal("operate the network")),
        }
    }

    /// Checks that it may act as this node.
    pub(crate) fn may_register(&self, node: &str) -> Result<(), Refusal> {
        match (self.role, &self.node) {
            (Role::Admin, _) => Ok(()),
            (Role::Node, Some(own)) if own == node => Ok(()),
            (Role::Node, _) => Err(self.refusal(&format!("register as node {node}"))),
            (Role::Tenant | Role::Read, _) => Err(self.refusal("register as a node")),
        }
    }

    fn refusal(&self, what: &str) -> Refusal {
        Refusal::new(ProblemType::Forbidden, format!("token {} may not {what}", self.name))
    }

    fn other_tenant(&self) -> Refusal {
        Refusal::new(ProblemType::OtherTenant, format!("token {} belongs to another tenant", self.name))
    }
}
