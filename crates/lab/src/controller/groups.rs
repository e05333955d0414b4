//! Groups at the lab's controller, created as by the launcher of a job, which acts for hosts without an API client.

use super::ControllerAccess;
use crate::error::{LabError, Result};
use crate::group::{Member, REGION_BASE, REGION_RKEY, address, list_mode};
use crate::host::GroupAtController;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::namespace;
use crate::topology::{ControlledGroup, Operation, Transfer};
use srdma_api::{Client, ClientError, GroupState, NewGroup, NewReceiver, SourceAddress};
use srdma_group::Policy;
use srdma_wire::Qpn;
use std::fs;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

/// Time for nodes to install a group, and to remove it.
const NODE_PATIENCE: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A group that the lab has had its controller create.
pub(crate) struct CreatedGroup {
    client: Client,
    /// The namespace from which requests to the controller are sent.
    namespace: String,
    access: ControllerAccess,
    id: u32,
    receivers: usize,
    transfer: Transfer,
}

impl CreatedGroup {
    /// Creates the group of a lab, whose source has this queue pair.
    pub(crate) fn create(lab: &Lab, plan: &ControlledGroup, transfer: &Transfer, source: Qpn) -> Result<Self> {
        let topology = lab.topology();
        let no_controller = || LabError::NoGroup(lab.instance().name().to_owned());
        let own = topology.controller.as_ref().ok_or_else(no_controller)?;
        let access = ControllerAccess::of(topology, lab.instance()).ok_or_else(no_controller)?;
        let token_file = &access.token_file;
        let token = fs::read_to_string(token_file).map_err(LabError::file("read", token_file))?;
        let client = Client::new(&access.url, Some(token), Some(&access.ca_file))?;
        let namespace = lab.instance().namespace(&topology.nodes[own.node].name);
        let source = SourceAddress { address: address(topology, plan.source)?, qpn: source.get() };
        let new = NewGroup {
            name: Some(topology.name.clone()),
            proxy: Some(plan.proxy),
            initial_psn: plan.initial_psn.get(),
            path_mtu: transfer.path_mtu.into(),
            region: writes(transfer).then_some(srdma_api::SourceRegion {
                base: REGION_BASE,
                length: transfer.size_octets,
                rkey: REGION_RKEY,
            }),
            policy: Policy { lists: list_mode(transfer.lists), ..Policy::default() },
            ..NewGroup::new(source, plan.designated_qpn.get())
        };
        let receivers = plan.receivers.len();
        let mut group = CreatedGroup { client, namespace, access, id: 0, receivers, transfer: transfer.clone() };
        group.id = group.ask(move |client| client.create_group(&new, None))?.summary.id;
        Ok(group)
    }

    /// Parameters of hosts that use the controller's API themselves.
    pub(crate) fn for_hosts(&self) -> GroupAtController {
        GroupAtController { url: self.url(), access: self.access.clone(), receivers: self.receivers }
    }

    /// The URL of the controller, and the group's number behind it.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.access.url, self.id)
    }

    /// Joins for a receiver that does not do it itself.
    pub(crate) fn join(&self, address: Ipv6Addr, member: Member) -> Result<()> {
        let region = member.region.filter(|_| writes(&self.transfer));
        let receiver = NewReceiver {
            qpn: member.qpn.get(),
            path_mtu: self.transfer.path_mtu.into(),
            region: region.map(Into::into),
            more_regions: Vec::new(),
            host: None,
            psn_offset: 0,
        };
        let id = self.id;
        self.ask(move |client| client.join(id, address, &receiver)).map(drop)
    }

    /// Waits until all receivers have joined; `check` fails when they no longer can.
    pub(crate) fn wait_for_receivers(
        &self,
        patience: Duration,
        interrupt: &Interrupt,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        self.wait("receivers to join", patience, interrupt, |group| {
            check()?;
            Ok(group.members.len() >= self.receivers)
        })
    }

    /// Has the nodes take their parts, and waits until they have.
    pub(crate) fn commit(&self, interrupt: &Interrupt) -> Result<()> {
        let id = self.id;
        self.ask(move |client| client.commit_group(id, 0))?;
        self.wait("nodes to take their parts", NODE_PATIENCE, interrupt, |group| match group.summary.state {
            GroupState::Ready => Ok(true),
            GroupState::Creating | GroupState::Changing | GroupState::Verifying => Ok(false),
            GroupState::Open | GroupState::Closing | GroupState::Closed | GroupState::Stopped => {
                Err(self.problem(group.failure.clone().unwrap_or_else(|| "it was given up".to_owned())))
            }
        })
    }

    /// The group's description at the controller.
    pub(crate) fn view(&self) -> Result<srdma_api::Group> {
        let id = self.id;
        self.ask(move |client| client.group(id))
    }

    /// Closes the group, and waits until all nodes have removed it.
    pub(crate) fn close(&self, interrupt: &Interrupt) -> Result<()> {
        let id = self.id;
        self.ask(move |client| client.close_group(id))?;
        let closed = self.wait("nodes to let go of it", NODE_PATIENCE, interrupt, |group| {
            Ok(group.summary.state == GroupState::Closed)
        });
        match closed {
            Err(LabError::Controller(error)) if is_unknown(&error) => Ok(()),
            closed => closed,
        }
    }

    fn wait(
        &self,
        what: &str,
        patience: Duration,
        interrupt: &Interrupt,
        mut is_so: impl FnMut(&srdma_api::Group) -> Result<bool>,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            let group = self.view()?;
            if is_so(&group)? {
                return Ok(());
            }
            if begin.elapsed() > patience {
                let awaited = if group.awaited.is_empty() { String::new() } else { format!(": {:?}", group.awaited) };
                return Err(self.problem(format!("waited in vain for {what}, {} s{awaited}", patience.as_secs())));
            }
            interrupt.sleep(POLL_INTERVAL)?;
        }
    }

    fn problem(&self, problem: String) -> LabError {
        LabError::Unexpected { who: format!("group {}", self.url()), problem }
    }

    /// Sends a request to the controller, in its namespace.
    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&Client) -> std::result::Result<T, ClientError> + Send + 'static,
    ) -> Result<T> {
        let client = self.client.clone();
        Ok(namespace::enter(&self.namespace, move || request(&client))??)
    }
}

fn writes(transfer: &Transfer) -> bool {
    transfer.operation == Operation::Write
}

fn is_unknown(error: &ClientError) -> bool {
    error.is(srdma_api::ProblemType::UnknownGroup)
}
