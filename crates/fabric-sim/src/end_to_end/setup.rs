//! Set-up of an end-to-end run: nodes, hosts, links, the group, and the program of the source's NIC.

use super::scenario::EndToEndScenario;
use crate::build::{self, ADDRESSES, Builder};
use crate::device::Device;
use crate::group_host::GroupHost;
use crate::groups::{self, GroupSpec, Member, PlannedGroup};
use crate::nic::Outer;
use crate::page_memory::octets_of_page;
use crate::run::{ECT_0, RunError};
use crate::scenario::{Control, FabricScenario, Signal, Variant};
use crate::server::{DATA_DSCP, Scratch};
use crate::wan::figure::{self, BOTTLENECK_RATE, GATEWAY_RATE, SPINES};
use crate::wan::measure::{Load, around, backpressure};
use crate::wan::nodes::{WanSignal, proxy_commands};
use crate::wan::{Wan, figure::switches_of};
use srdma_dataplane::headroom::octets_in;
use srdma_dataplane::{Encaps, EncapsMode, Node};
use srdma_fabric::{HostId, LinkId as FabricLink, NextHops, NodeId, SidPlan, SwitchId, Topology};
use srdma_group::{CnpMode, Policy, ReceiverRegion, Source, SourceRegion};
use srdma_random::{Probability, Stream};
use srdma_rc::rate::RateAlgorithm;
use srdma_rc::{Habits, MemoryKey, QueuePairConfig, RemoteAddress};
use srdma_sim::addressing;
use srdma_sim::invariants::Layout;
use srdma_sim::link::LinkModel;
use srdma_sim::network::{ElementId, LinkId, Network};
use srdma_sim::program::{MessageOperation, SendStream};
use srdma_sim::replica::Replica;
use srdma_sim::setup::{GROUP_REGION_BASE, GROUP_RKEY, receiver_base};
use srdma_wire::units::NS_PER_MS;
use srdma_wire::{Instant, Psn, Qpn};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

/// Chunks of the frames' pool, of each size, at most.
const POOL_CHUNKS: usize = 1 << 19;

/// The group's number among all: the only one.
const GROUP_NUMBER: usize = 0;

/// The source's rank among the group's hosts; receivers are counted from 1.
const SOURCE_RANK: usize = 0;

/// Queue pairs of the other senders, at both ends, begin here.
const FIRST_OTHER_QPN: u32 = 0x20_0000;

/// Octets of their messages: some are always posted ahead.
const OTHER_MESSAGE_OCTETS: u32 = 256 << 10;

/// Levels of the group's tree that aggregate: gateway, spine, leaves.
const LEVELS: u32 = 3;

/// All T_hold of the tree together are such a part of the source's ACK timeout: less than a quarter (D20).
const HOLD_PART: u32 = 5;

/// Outer hop limit of what the source's NIC encapsulates.
const HOP_LIMIT: u8 = 64;

/// A host that sends without end.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackgroundSender {
    pub(super) number: usize,
    pub(super) from: HostId,
    pub(super) qpn: Qpn,
    pub(super) start: Instant,
}

/// The network of a run with its configuration.
pub(super) struct Site {
    pub(super) scenario: FabricScenario,
    pub(super) network: Network<Device>,
    pub(super) switches: Vec<ElementId>,
    pub(super) hosts: Vec<ElementId>,
    /// In the topology's order.
    pub(super) links: Vec<LinkId>,
    pub(super) source: HostId,
    /// The receivers, each with the key of its memory.
    pub(super) receivers: Vec<(HostId, MemoryKey)>,
    pub(super) data: Arc<Vec<u8>>,
    pub(super) layout: Layout,
    pub(super) others: Vec<BackgroundSender>,
    next_hops: NextHops,
    sids: SidPlan,
    group: PlannedGroup,
    seed: u64,
}

impl Site {
    /// # Errors
    /// Only a defect can cause them.
    pub(super) fn new(plan: &EndToEndScenario, seed: u64) -> Result<Self, RunError> {
        let section = &plan.section;
        let variant =
            Variant { dcqcn: section.dcqcn.clone(), ..Variant::new("end-to-end", Signal::FastCnp, Control::Dcqcn) };
        let end_ns = section.limit_ms.get() * NS_PER_MS;
        let (hosts, switches) = (plan.hosts.clone(), plan.switches.clone());
        let scenario = around(wan(plan), &section.distances(), variant, hosts, switches, end_ns)?;
        let sids = SidPlan::new(&scenario.topology, SidPlan::BLOCK)?;
        let mut data = vec![0; section.octets.get() as usize];
        Stream::new(seed, "data").fill(&mut data);
        let layout = Layout {
            size_octets: section.octets.get(),
            message_octets: section.message_octets.get() as u32,
            path_mtu_octets: plan.hosts.path_mtu().octets(),
            first_psn: Psn::new(Stream::new(seed, "first PSN").below(1 << 24) as u32),
        };
        let mut network = Network::new(seed, POOL_CHUNKS);
        let (source, data) = (figure::host(0, 0, 0), Arc::new(data));
        let per_edge = section.receivers_per_edge.get() as u16;
        let receivers =
            (0..section.receivers() as u16).map(|number| figure::host(1, number / per_edge, number % per_edge));
        let mut members: Vec<Member> = Vec::new();
        let mut made = Vec::new();
        for (rank, host) in (1..).zip(receivers) {
            let (member, region) = receiver(&scenario, &layout, host, rank, &data)?;
            let region_of_record = ReceiverRegion { base: receiver_base(rank), rkey: region.0 };
            members.push(Member { host, qpn: addressing::receiving_qpn(rank), region: region_of_record });
            made.push((host, region, member));
        }
        let group =
            PlannedGroup::with_spec(&scenario.topology, GROUP_NUMBER, spec(&scenario, &layout, source, members))?;
        let next_hops = NextHops::new(&scenario.topology);
        let switches: Vec<ElementId> = scenario.topology.switch_ids().map(|_| network.add(Device::Absent)).collect();
        let from_spine = figure::spine(0, (seed % u64::from(SPINES)) as u16);
        let sender = sender(&scenario, &layout, &sids, source, from_spine, &data)?;
        let page = octets_of_page();
        let scratch = Scratch::new(crate::page_memory::SharedPage::new(Arc::clone(&page), None));
        let mut keys = Vec::new();
        let mut of_group: Vec<(HostId, GroupHost)> = vec![(source, sender)];
        for (host, region, member) in made {
            keys.push((host, region));
            of_group.push((host, member));
        }
        let mut hosts = Vec::new();
        for host in scenario.topology.host_ids() {
            let device = match of_group.iter().position(|(member, _)| *member == host) {
                Some(place) => Device::GroupHost(Box::new(of_group.swap_remove(place).1)),
                None => {
                    Device::Server(Box::new(build::server(&scenario, &scenario.variants[0], host, &page, &scratch)))
                }
            };
            hosts.push(network.add(device));
        }
        let mut site = Site {
            scenario,
            network,
            switches,
            hosts,
            links: Vec::new(),
            source,
            receivers: keys,
            data,
            layout,
            others: Vec::new(),
            next_hops,
            sids,
            group,
            seed,
        };
        for switch in site.scenario.topology.switch_ids() {
            let node = site.switch(switch, false)?;
            site.set_device(switch, Device::Switch(Box::new(node)));
        }
        site.join(Probability::new(section.loss.get()).unwrap_or(Probability::ZERO));
        site.add_background_senders(plan)?;
        Ok(site)
    }

    /// A switch with its whole configuration: as one of a fabric and of the WAN, the Proxy Address, its group entry.
    ///
    /// # Errors
    ///
    /// Those of the switch's configuration.
    pub(super) fn switch(&self, switch: SwitchId, restarted: bool) -> Result<Node, RunError> {
        let topology = &self.scenario.topology;
        let builder = Builder {
            scenario: &self.scenario,
            variant: &self.scenario.variants[0],
            next_hops: &self.next_hops,
            sids: Some(&self.sids).filter(|_| switches_of(0).any(|near| near == switch)),
            seed: self.seed,
        };
        let mut node = builder.switch(switch, restarted)?;
        let of_group = self.group.commands().into_iter().filter(|(at, _)| *at == switch).map(|(_, command)| command);
        for command in proxy_commands(topology, switch, groups::proxy(GROUP_NUMBER)).into_iter().chain(of_group) {
            node.apply(command)?;
        }
        Ok(node)
    }

    /// Replaces the device of a switch and returns the previous one.
    pub(super) fn set_device(&mut self, switch: SwitchId, device: Device) -> Device {
        self.network.with(self.switches[switch.index()], |place, _, _| std::mem::replace(place, device))
    }

    /// A switch, to look at; `None` while it is down.
    pub(super) fn node(&self, switch: SwitchId) -> Option<&Node> {
        self.network.element(self.switches[switch.index()]).switch()
    }

    /// A host of the group, to look at.
    pub(super) fn member(&self, host: HostId) -> Option<&GroupHost> {
        self.network.element(self.hosts[host.index()]).member()
    }

    pub(super) fn group(&self) -> &PlannedGroup {
        &self.group
    }

    /// The group's record as its nodes know it.
    pub(super) fn group_id(&self) -> srdma_group::GroupId {
        self.group.id()
    }

    /// The switch that owns the Proxy Address.
    pub(super) fn root(&self) -> SwitchId {
        figure::gateway(1)
    }

    /// The source's queue pair.
    pub(super) fn source_qpn(&self) -> Qpn {
        addressing::qpn_toward(SOURCE_RANK)
    }

    /// The link of a host.
    pub(super) fn link_of(&self, host: HostId) -> Option<LinkId> {
        let port = self.scenario.topology.ports(NodeId::Host(host)).first()?;
        self.links.get(port.link.index()).copied()
    }

    /// Joins everything by links that lose.
    fn join(&mut self, loss: Probability) {
        let topology = &self.scenario.topology;
        for (number, link) in topology.links().iter().enumerate() {
            let model = LinkModel { loss, ..LinkModel::perfect(link.rate_bits_per_s, link.delay_ns) };
            let [lower, upper] = link.ends.map(|end| build::place(&self.switches, &self.hosts, end));
            let name = topology.link_name(FabricLink(number as u32));
            self.links.push(self.network.connect(&name, upper, lower, model));
        }
    }

    /// Connects the hosts that overload the WAN: one below each further leaf, to one below a leaf without receivers.
    fn add_background_senders(&mut self, plan: &EndToEndScenario) -> Result<(), RunError> {
        let mut rng = Stream::new(self.seed, "other senders");
        let edges = plan.section.edges.get_ref().get() as u16;
        for number in 0..plan.section.senders.get() as u16 {
            let (from, to) = (figure::host(0, 1 + number, 0), figure::host(1, edges + number, 0));
            let qpn = addressing::qpn(FIRST_OTHER_QPN, usize::from(number));
            let topology = &self.scenario.topology;
            let toward = |peer: HostId| (ADDRESSES.host(topology, peer), qpn, Psn::new(0));
            let near = queue_pair(&self.scenario, from, qpn, toward(to));
            let far = queue_pair(&self.scenario, to, qpn, toward(from));
            for (host, config) in [(to, far), (from, near)] {
                self.with_server(host, |server| server.connect(config)).transpose()?;
            }
            let start = Instant::from_ns(rng.below(20_000));
            self.others.push(BackgroundSender { number: usize::from(number), from, qpn, start });
        }
        self.others.sort_by_key(|other| other.start);
        Ok(())
    }

    /// Begins a flow without end.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn begin(&mut self, other: BackgroundSender) -> Result<(), RunError> {
        let begin =
            |server: &mut crate::server::Server| server.begin_endless(other.number, other.qpn, OTHER_MESSAGE_OCTETS);
        self.with_server(other.from, begin).transpose()?;
        Ok(())
    }

    /// Lets `action` change a server.
    pub(super) fn with_server<R>(
        &mut self,
        host: HostId,
        action: impl FnOnce(&mut crate::server::Server) -> R,
    ) -> Option<R> {
        self.network.with(self.hosts[host.index()], |device, _, _| device.server_mut().map(action))
    }

    /// Lets `action` change a host of the group.
    pub(super) fn with_member<R>(&mut self, host: HostId, action: impl FnOnce(&mut GroupHost) -> R) -> Option<R> {
        self.network.with(self.hosts[host.index()], |device, _, _| device.member_mut().map(action))
    }
}

/// The WAN: both kinds of notification. The congested node has no information on whether senders handle them, so it
/// marks packets as well (FC-4-5): receivers answer marks with CNPs, which the tree aggregates.
fn wan(plan: &EndToEndScenario) -> Wan {
    let section = &plan.section;
    let distances = section.distances();
    let path_octets = octets_in(2 * distances.path_ns(), BOTTLENECK_RATE);
    let buffer_octets = (path_octets as f64 * section.buffer()) as usize;
    // However few send: what has waited behind a pause comes at the gateway's rate.
    let load = Load { in_bits_per_s: GATEWAY_RATE, path_mtu: plan.hosts.path_mtu() };
    let known = backpressure(load, distances.node_ns(section.congested), buffer_octets, false);
    Wan {
        congested: section.congested,
        buffer_octets,
        signal: WanSignal::EndE,
        threshold_octets: known.xoff_octets,
        backpressure: Some(known),
        hold: Duration::from_micros(section.hold_us.get()),
        knows_senders: false,
    }
}

/// ACK timeout of all hosts.
fn ack_timeout(scenario: &FabricScenario) -> Duration {
    Duration::from_nanos(4096 << scenario.hosts.ack_timeout.get())
}

fn spec(scenario: &FabricScenario, layout: &Layout, source: HostId, receivers: Vec<Member>) -> GroupSpec {
    GroupSpec {
        root: Some(figure::gateway(1)),
        source: Source {
            address: ADDRESSES.host(&scenario.topology, source),
            qpn: addressing::qpn_toward(SOURCE_RANK),
        },
        region: SourceRegion { base: GROUP_REGION_BASE, length: layout.size_octets, rkey: GROUP_RKEY.0 },
        receivers,
        designated_qpn: addressing::designated_qpn(),
        initial_psn: layout.first_psn,
        path_mtu: scenario.hosts.path_mtu(),
        policy: Policy {
            t_hold: ack_timeout(scenario) / (HOLD_PART * LEVELS),
            cnp_mode: CnpMode::Leading,
            ..Policy::default()
        },
    }
}

/// A queue pair of a host toward an address, a queue pair there, and the PSN that both begin with.
fn queue_pair(
    scenario: &FabricScenario,
    own: HostId,
    qpn: Qpn,
    (address, remote, psn): (Ipv6Addr, Qpn, Psn),
) -> QueuePairConfig {
    let (hosts, (_, rate_bits_per_s)) = (&scenario.hosts, build::attachment(&scenario.topology, own));
    QueuePairConfig {
        sq_psn: psn,
        rq_psn: psn,
        path_mtu: hosts.path_mtu(),
        traffic_class: DATA_DSCP << 2 | ECT_0,
        ack_timeout: hosts.ack_timeout.get() as u8,
        cnp_interval_ns: Some(hosts.cnp_interval_ns.get()),
        rate: Some(RateAlgorithm::Dcqcn(scenario.variants[0].dcqcn.parameters(rate_bits_per_s))),
        habits: Habits {
            max_outstanding_psns: hosts.outstanding_packets.get() as u32,
            ack_request_interval: hosts.ack_every.get() as u32,
            ..Habits::soft_roce()
        },
        ..QueuePairConfig::new(qpn, address, remote)
    }
}

/// A queue pair toward the group (MT-5.1-1), which begins at the group's first PSN (D28).
fn of_group(scenario: &FabricScenario, layout: &Layout, own: HostId, qpn: Qpn) -> QueuePairConfig {
    queue_pair(scenario, own, qpn, (groups::proxy(GROUP_NUMBER), addressing::designated_qpn(), layout.first_psn))
}

fn member(scenario: &FabricScenario, host: HostId) -> GroupHost {
    let (attachment, rate_bits_per_s) = build::attachment(&scenario.topology, host);
    GroupHost::new(&attachment, build::endpoint(scenario, &scenario.variants[0], host), rate_bits_per_s)
}

fn receiver(
    scenario: &FabricScenario,
    layout: &Layout,
    host: HostId,
    rank: usize,
    data: &Arc<Vec<u8>>,
) -> Result<(GroupHost, MemoryKey), RunError> {
    let mut member = member(scenario, host);
    member.host.add_queue_pair(of_group(scenario, layout, host, addressing::receiving_qpn(rank)))?;
    let region = member.host.add_region(Replica::empty(Arc::clone(data)), receiver_base(rank), rank as u8);
    Ok((member, region))
}

/// The source, whose NIC leads its packets through the fabric: leaf, this spine, gateway (PP-4-3).
fn sender(
    scenario: &FabricScenario,
    layout: &Layout,
    sids: &SidPlan,
    host: HostId,
    spine: SwitchId,
    data: &Arc<Vec<u8>>,
) -> Result<GroupHost, RunError> {
    let topology = &scenario.topology;
    let qpn = addressing::qpn_toward(SOURCE_RANK);
    let mut member = member(scenario, host);
    member.host.add_queue_pair(of_group(scenario, layout, host, qpn))?;
    let region = member.host.add_region(Replica::of_source(Arc::clone(data)), 0, 0);
    let remote = RemoteAddress { virtual_address: GROUP_REGION_BASE, rkey: GROUP_RKEY };
    let operation = MessageOperation::Write { remote };
    member.host.observe_responses();
    member.host.add_send_stream(SendStream::new(qpn, region, layout.size_octets, layout.message_octets, operation));
    let program = sids.address(program_of(topology, sids, host, spine));
    let encaps = Encaps::new(ADDRESSES.host(topology, host), &[program], EncapsMode::Reduced, HOP_LIMIT)?;
    member.encapsulate(groups::proxy(GROUP_NUMBER), addressing::designated_qpn(), Outer::Fixed(encaps))?;
    Ok(member)
}

/// The ids of a program that ends at the gateway, which takes the outer header off and looks the inner one up.
fn program_of(topology: &Topology, sids: &SidPlan, host: HostId, spine: SwitchId) -> Vec<u16> {
    let leaf = topology.attached_to(host).next();
    leaf.into_iter().chain([spine, figure::gateway(0)]).map(|switch| sids.id(switch)).collect()
}
