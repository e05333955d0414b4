//! A group of queue pairs of programs that know nothing of groups, at the controller (D205, D207, D250).

use crate::output::print_line;
use crate::units;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use srdma_api::{
    Client, GroupState, MemoryRegion, NewGroup, NewReceiver, ProblemType, ReceiverState, SourceAddress, SourceRegion,
    SourceTransport,
};
use srdma_group::PsnOffset;
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_session::{BeginOptions, CreatedGroup, SourceClient};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::{IpAddr, Ipv6Addr};
use std::thread;
use std::time::{Duration, Instant};

/// Time for the nodes to remove the group, after which the command ends all the same.
const CLOSING: Duration = Duration::from_secs(10);
/// Interval for asking whether they have.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Options of the group.
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) proxy: Option<Ipv6Addr>,
    pub(crate) window_octets: Option<u32>,
    pub(crate) says_json: bool,
}

/// The source of the group.
pub(crate) struct Source {
    pub(crate) address: Ipv6Addr,
    pub(crate) qpn: Qpn,
    /// The queue pair that it sends to.
    pub(crate) designated_qpn: Qpn,
    pub(crate) initial_psn: Psn,
    pub(crate) path_mtu: PathMtu,
    pub(crate) transport: SourceTransport,
    /// The memory region that it writes to; none if it sends alone.
    pub(crate) region: Option<SourceRegion>,
}

/// A receiver of the group.
pub(crate) struct Receiver {
    pub(crate) address: Ipv6Addr,
    pub(crate) qpn: Qpn,
    pub(crate) region: Option<MemoryRegion>,
    /// Distance of its queue pair's PSNs from the group's.
    pub(crate) psn_offset: PsnOffset,
}

/// A source that counts as one with messages under way, of which nothing tells when they are complete: the controller
/// does not take it for paused any more (D207).
fn begin_undrained(mut source: SourceClient) -> Result<SourceClient> {
    loop {
        match source.update(StreamProgress { is_drained: false, ..StreamProgress::default() }) {
            SessionState::Sending => return Ok(source),
            SessionState::Ended => bail!("the group was closed before the client could send"),
            // A receiver joins at this moment: nothing has been sent, and nothing is until it has.
            SessionState::Draining | SessionState::Paused => {
                source.update(StreamProgress { is_drained: true, ..StreamProgress::default() });
                ensure!(source.wait_until_sending(), "the group was closed before the client could send");
            }
        }
    }
}

/// The group, for `--json`.
#[derive(Serialize)]
struct Begun {
    group: u32,
    proxy: IpAddr,
    receivers: usize,
    path_mtu: u32,
}

/// The group: at first there is none. Dropping it closes it.
pub(crate) struct ProgramsGroup {
    client: Client,
    options: Options,
    receivers: usize,
    path_mtu: u16,
    // Dropped in this order: the source ends before the group is closed.
    source: Option<SourceClient>,
    created: Option<CreatedGroup>,
}

impl ProgramsGroup {
    pub(crate) fn new(client: Client, options: Options, receivers: usize) -> Self {
        ProgramsGroup { client, options, receivers, path_mtu: 0, source: None, created: None }
    }

    /// Creates the group for the client's queue pair; gives its Proxy Address.
    pub(crate) fn create(&mut self, source: Source) -> Result<Ipv6Addr> {
        let Options { name, proxy, window_octets, .. } = &self.options;
        let Source { address, qpn, designated_qpn, initial_psn, path_mtu, transport, region } = source;
        self.path_mtu = path_mtu.into();
        let new = NewGroup {
            name: Some(name.clone()),
            proxy: *proxy,
            initial_psn: initial_psn.get(),
            path_mtu: self.path_mtu,
            region,
            transport: (transport != SourceTransport::USUAL).then_some(transport),
            window_octets: *window_octets,
            ..NewGroup::new(SourceAddress { address, qpn: qpn.get() }, designated_qpn.get())
        };
        let created = CreatedGroup::create(self.client.clone(), &new).context("the group for the client")?;
        let found = created.find()?;
        self.created = Some(created);
        Ok(found.file().proxy)
    }

    /// Has the receivers join, commits the group, and waits until the client may send.
    pub(crate) fn begin(&mut self, receivers: &[Receiver]) -> Result<()> {
        let created = self.created.as_ref().context("there is a group")?;
        for receiver in receivers {
            let Receiver { address, qpn, region, psn_offset } = *receiver;
            let psn_offset = psn_offset.get();
            let new = NewReceiver { region, psn_offset, ..NewReceiver::new(qpn.get(), self.path_mtu) };
            self.client
                .join(created.id(), address, &new)
                .with_context(|| format!("receiver {}", address.to_canonical()))?;
        }
        let found = created.find()?;
        let receivers = u32::try_from(receivers.len())?;
        let source = found.begin(BeginOptions { receivers, commit: true }, |_| ())?;
        let source = begin_undrained(source)?;
        self.source = Some(source);
        let file = found.file();
        let begun = Begun {
            group: created.id(),
            proxy: file.proxy.to_canonical(),
            receivers: self.receivers,
            path_mtu: file.path_mtu.octets(),
        };
        print_line(&if self.options.says_json {
            serde_json::to_string(&begun)?
        } else {
            let Begun { group, proxy, path_mtu, .. } = begun;
            let receivers = units::count(u64::from(receivers), "receiver");
            format!("group {group}: {receivers}, Proxy Address {proxy}, path MTU {path_mtu}")
        })
    }

    /// That all receivers are members to the end.
    pub(crate) fn check(&self) -> Result<()> {
        let created = self.created.as_ref().context("there is a group")?;
        let group = self.client.group(created.id())?;
        let members = group.members.iter().filter(|member| member.state == ReceiverState::Member).count();
        let failure = group.failure.map(|failure| format!(": {failure}")).unwrap_or_default();
        ensure!(members == self.receivers, "{members} of {} receivers were left at the end{failure}", self.receivers);
        Ok(())
    }

    /// Why the controller says that something has failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.client.group(self.created.as_ref()?.id()).ok()?.failure
    }

    /// Closes the group, and waits until the nodes have removed it: its Proxy Address is free then.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.source = None;
        let Some(created) = self.created.take() else { return Ok(()) };
        let id = created.id();
        drop(created);
        let begin = Instant::now();
        while begin.elapsed() < CLOSING {
            match self.client.group(id) {
                Ok(group) if group.summary.state == GroupState::Closed => break,
                Err(error) if error.is(ProblemType::UnknownGroup) => break,
                Ok(_) | Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
        Ok(())
    }
}
