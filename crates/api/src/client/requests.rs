//! One method for each request of the API.

use super::{Client, ClientError};
use crate::{
    AuditPage, CommitRequest, DrainLinks, DrainRequest, ForeignGroups, Group, GroupPage, Job, JobPage, NewGroup,
    NewJob, NewReceiver, Node, NodeIdentity, NodePage, ProblemType, Receiver, ReceiverOrder, ReceiverReport,
    Registration, RenameRequest, Session, SourceOrder, SourceReport, SourceService, Sync, SyncAnswer, Topology,
    UnreachableReport, WhatIf, WhatIfAnswer,
};
use std::fmt::Display;
use std::io::Read;
use std::net::Ipv6Addr;
use std::sync::atomic::Ordering;

type Result<T> = std::result::Result<T, ClientError>;

/// Groups.
impl Client {
    /// A page of the groups behind a number, of one tenant or of all.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn groups(&self, tenant: Option<&str>, after: Option<u32>, limit: Option<usize>) -> Result<GroupPage> {
        let query = query([("tenant", text(tenant)), ("after", text(after)), ("limit", text(limit))]);
        Ok(self.get(&format!("/v1/groups{query}"))?.value)
    }

    /// Creates a group. The same idempotency key, sent again, receives the same response and creates nothing more.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn create_group(&self, new: &NewGroup, idempotency_key: Option<&str>) -> Result<Group> {
        Ok(self.post("/v1/groups", new, idempotency_key)?.value)
    }

    /// A group in full.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn group(&self, id: u32) -> Result<Group> {
        Ok(self.get(&group(id))?.value)
    }

    /// The group that resumes a group whose source has died, directly or by others between them (D193). That there is
    /// none is [`ProblemType::UnknownGroup`]; a controller of an earlier version says [`ProblemType::UnknownPath`].
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn successor(&self, id: u32) -> Result<Group> {
        Ok(self.get(&format!("{}/successor", group(id)))?.value)
    }

    /// Installs a new group on all nodes, and waits for them, up to 60 s.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn commit_group(&self, id: u32, wait_ms: u32) -> Result<Group> {
        Ok(self.post(&format!("{}/commit", group(id)), &CommitRequest { wait_ms }, None)?.value)
    }

    /// Closes a group at all nodes; returns it as it was.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn close_group(&self, id: u32) -> Result<Group> {
        Ok(self.delete(&group(id))?.value)
    }

    /// A receiver of a group.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn receiver(&self, id: u32, address: Ipv6Addr) -> Result<Receiver> {
        Ok(self.get(&receiver(id, address))?.value)
    }

    /// Adds a receiver; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn join(&self, id: u32, address: Ipv6Addr, new: &NewReceiver) -> Result<Receiver> {
        Ok(self.put(&receiver(id, address), new)?.value)
    }

    /// Reserves a place for a receiver that joins in two steps (D187); may be repeated. A controller that does not know
    /// this refuses it as [`ProblemType::UnknownPath`].
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn reserve(&self, id: u32, address: Ipv6Addr, new: &NewReceiver) -> Result<Receiver> {
        Ok(self.put(&format!("{}/reservation", receiver(id, address)), new)?.value)
    }

    /// Reports the state of a receiver that has a reservation; returns its order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn report_receiver(&self, id: u32, address: Ipv6Addr, report: &ReceiverReport) -> Result<ReceiverOrder> {
        Ok(self.post(&format!("{}/report", receiver(id, address)), report, None)?.value)
    }

    /// Removes a receiver; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn leave(&self, id: u32, address: Ipv6Addr) -> Result<Receiver> {
        Ok(self.delete(&receiver(id, address))?.value)
    }

    /// Reports the state of a group's source; returns its order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn report_source(&self, id: u32, report: &SourceReport) -> Result<SourceOrder> {
        Ok(self.post(&format!("{}/source", group(id)), report, None)?.value)
    }
}

/// Services of sources.
impl Client {
    /// States where a group's source serves the version that it published last; may be repeated. A controller that
    /// does not know this refuses it as [`ProblemType::UnknownPath`].
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn state_service(&self, id: u32, service: &SourceService) -> Result<()> {
        self.put::<serde::de::IgnoredAny>(&format!("{}/service", group(id)), service)?;
        Ok(())
    }
}

/// Groups that nodes have and the controller's store does not. A store is 16 hexadecimal digits.
impl Client {
    /// All of them.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn foreign_groups(&self) -> Result<ForeignGroups> {
        Ok(self.get("/v1/foreign-groups")?.value)
    }

    /// Adopts one of the controller's own store; returns the others.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn adopt_group(&self, store: &str, group: u32) -> Result<ForeignGroups> {
        Ok(self.post(&format!("/v1/foreign-groups/{store}/{group}/adopt"), &(), None)?.value)
    }

    /// Removes one from its nodes; returns those that are left.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn remove_foreign_group(&self, store: &str, group: u32) -> Result<ForeignGroups> {
        Ok(self.delete(&format!("/v1/foreign-groups/{store}/{group}"))?.value)
    }
}

/// Nodes and the network.
impl Client {
    /// A page of the nodes behind a name.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn nodes(&self, after: Option<&str>, limit: Option<usize>) -> Result<NodePage> {
        let query = query([("after", text(after)), ("limit", text(limit))]);
        Ok(self.get(&format!("/v1/nodes{query}"))?.value)
    }

    /// A node.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn node(&self, name: &str) -> Result<Node> {
        Ok(self.get(&node(name))?.value)
    }

    /// Registers a node.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn register(&self, registration: &Registration) -> Result<Session> {
        Ok(self.post("/v1/nodes", registration, None)?.value)
    }

    /// Reports the state of a node; returns its orders, and waits for one.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn sync(&self, name: &str, sync: &Sync) -> Result<SyncAnswer> {
        Ok(self.post(&format!("{}/sync", node(name)), sync, None)?.value)
    }

    /// Reports neighbours of a node whose BFD session has gone down, while another request of the node may be waiting.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn report_unreachable(&self, name: &str, report: &UnreachableReport) -> Result<()> {
        self.post::<()>(&format!("{}/unreachable", node(name)), report, None)?;
        Ok(())
    }

    /// Excludes a node from new trees, or admits it again; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn drain_node(&self, name: &str, drained: bool) -> Result<Node> {
        Ok(self.put(&format!("{}/drain", node(name)), &DrainRequest { drained })?.value)
    }

    /// Confirms what a node has registered. `identity`: what is confirmed; another registration is refused.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn confirm_node(&self, name: &str, identity: &NodeIdentity) -> Result<Node> {
        Ok(self.post(&format!("{}/confirm", node(name)), identity, None)?.value)
    }

    /// Gives a node another name.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn rename_node(&self, name: &str, new: &str) -> Result<Node> {
        Ok(self.post(&format!("{}/rename", node(name)), &RenameRequest { name: new.to_owned() }, None)?.value)
    }

    /// Removes a node as soon as no group has it; returns it as it was.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn remove_node(&self, name: &str) -> Result<Node> {
        Ok(self.delete(&node(name))?.value)
    }

    /// Nodes and links with their load.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn topology(&self) -> Result<Topology> {
        Ok(self.get("/v1/topology")?.value)
    }
}

/// Jobs.
impl Client {
    /// A page of the jobs behind a name.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn jobs(&self, after: Option<&str>, limit: Option<usize>) -> Result<JobPage> {
        let query = query([("after", text(after)), ("limit", text(limit))]);
        Ok(self.get(&format!("/v1/jobs{query}"))?.value)
    }

    /// Places jobs: all of them or none.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn place_jobs(&self, new: &NewJob) -> Result<WhatIfAnswer> {
        Ok(self.post("/v1/jobs", new, None)?.value)
    }

    /// A job with its flows.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn job(&self, name: &str) -> Result<Job> {
        Ok(self.get(&format!("/v1/jobs/{name}"))?.value)
    }

    /// Removes a job.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn remove_job(&self, name: &str) -> Result<WhatIfAnswer> {
        Ok(self.delete(&format!("/v1/jobs/{name}"))?.value)
    }

    /// The effect of a change, without making it.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn what_if(&self, change: &WhatIf) -> Result<WhatIfAnswer> {
        Ok(self.post("/v1/whatif", change, None)?.value)
    }

    /// Excludes switches or links of the fabric, or admits them again.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn drain_links(&self, drain: &DrainLinks) -> Result<WhatIfAnswer> {
        Ok(self.put("/v1/fabric/drained", drain)?.value)
    }
}

/// The controller itself.
impl Client {
    /// A page of the audit log behind a number.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn audit(&self, after: Option<u64>, limit: Option<usize>) -> Result<AuditPage> {
        let query = query([("after", text(after)), ("limit", text(limit))]);
        Ok(self.get(&format!("/v1/audit{query}"))?.value)
    }

    /// A backup of the store, read as it arrives.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn backup(&self) -> Result<impl Read + use<>> {
        self.open("/v1/backup", &[])
    }

    /// The event stream behind the event with the id `last`, or from now on. After a failure the next call uses the
    /// next controller.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn events(&self, last: Option<&str>) -> Result<impl Read + use<>> {
        let current = self.current.load(Ordering::Relaxed);
        let opened = self.open("/v1/events", last.map(|last| ("last-event-id", last)).as_slice());
        let fails_over = match &opened {
            Err(error @ ClientError::Refused(_)) => error.is(ProblemType::NotLeader),
            Err(ClientError::Unreachable { .. }) => true,
            Ok(_) | Err(_) => false,
        };
        if fails_over {
            self.fail_over(current);
        }
        opened
    }
}

fn group(id: u32) -> String {
    format!("/v1/groups/{id}")
}

fn receiver(id: u32, address: Ipv6Addr) -> String {
    format!("{}/receivers/{address}", group(id))
}

fn node(name: &str) -> String {
    format!("/v1/nodes/{name}")
}

fn text(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// The query with the given parameters. Names and numbers need no escape.
fn query<const N: usize>(parameters: [(&str, Option<String>); N]) -> String {
    let given = parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    let query = given.collect::<Vec<_>>().join("&");
    if query.is_empty() { query } else { format!("?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_only_the_given_parameters() {
        assert_eq!(query([("after", text(None::<u32>))]), "");
        assert_eq!(query([("after", text(Some(7))), ("limit", text(Some("x")))]), "?after=7&limit=x");
    }
}
