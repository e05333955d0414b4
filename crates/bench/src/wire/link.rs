//! Two links in namespaces of their own, the generator at one end of both and the device under test at the other.
//!
//! ```text
//!   generator   to-node ────────────→ in    node
//!             from-node ←──────────── out
//! ```

use super::work::{LOOPBACK, NEXT_HOP, SEGMENTS, SID, SID_OF_END_DT6, next_segments, sid_of_micro_n, steered};
use anyhow::Context;
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::{AfPacket, Choice, Driver, Interest, Umem, XdpSource, XdpYardstick, interface_index};
use srdma_wire::MacAddress;

/// Both of the generator's ends: so a frame whose addresses were swapped arrives like one that was forwarded.
pub(super) const GENERATOR: MacAddress = MacAddress([2, 0, 0, 0, 1, 1]);

/// MAC address for frames that come in.
pub(super) const IN: MacAddress = MacAddress([2, 0, 0, 0, 0, 0]);

/// MAC address for frames that leave.
pub(super) const OUT: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

/// MAC address without an interface: the kernel drops frames for it at once.
pub(super) const UNASSIGNED: MacAddress = MacAddress([2, 0, 0, 0, 9, 9]);

pub(super) const MTU: u16 = 9000;

pub(super) struct Links {
    generator: NamespaceGuard,
    node: NamespaceGuard,
}

/// The device under test takes every frame.
fn everything() -> Interest {
    Interest { everything: true, ..Interest::default() }
}

impl Links {
    /// Makes them. The kernel forwards nothing yet, and sends nothing of its own at the generator's ends.
    pub(super) fn new() -> anyhow::Result<Self> {
        let generator = NamespaceGuard::unique("srdma-bench")?;
        let node = NamespaceGuard::unique("srdma-bench")?;
        generator.set("ipv6/conf/default/disable_ipv6", "1")?;
        for (near, near_mac, far) in [("in", IN, "to-node"), ("out", OUT, "from-node")] {
            let near = VethEnd { namespace: &node, interface: near, mac: Some(near_mac), addresses: &[] };
            let far = VethEnd { namespace: &generator, interface: far, mac: Some(GENERATOR), addresses: &[] };
            veth(MTU.into(), [near, far])?;
        }
        // As the daemon does: with AF_PACKET the kernel sees the frames, too, and must not answer them.
        node.run(&["ip", "-6", "route", "add", "blackhole", "default"])?;
        Ok(Links { generator, node })
    }

    /// The generator's way out.
    pub(super) fn generator(&self) -> anyhow::Result<AfPacket> {
        // It has nothing to receive.
        Ok(self.generator.enter(|| AfPacket::open("to-node", &Interest::default()))??)
    }

    /// Receives the frames that come back, for checks; measured frames end in the kernel.
    pub(super) fn witness(&self) -> anyhow::Result<AfPacket> {
        Ok(self.generator.enter(|| AfPacket::open("from-node", &everything()))??)
    }

    /// The drivers of what is measured, in and out.
    pub(super) fn drivers(&self, choice: Choice, umem: &Umem) -> anyhow::Result<[Box<dyn Driver>; 2]> {
        let open = |interface| srdma_io::open(interface, choice, &everything(), Some(umem)).map(|opened| opened.driver);
        let drivers = self.node.enter(|| Ok::<_, srdma_io::OpenError>([open("in")?, open("out")?]))??;
        Ok(drivers)
    }

    /// Frames that have come back, whole, as the interface counts them.
    pub(super) fn returned(&self) -> anyhow::Result<u64> {
        let table = self.generator.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
        let line = table.lines().find_map(|line| line.trim().strip_prefix("from-node:"));
        let frames = line.and_then(|line| line.split_whitespace().nth(1));
        frames.context("the counters of an interface")?.parse().context("a counter")
    }

    /// Numbers of the node's interfaces, in and out.
    pub(super) fn interfaces(&self) -> anyhow::Result<[u32; 2]> {
        let indices = self.node.enter(|| Ok::<_, std::io::Error>([interface_index("in")?, interface_index("out")?]))?;
        Ok(indices?)
    }

    /// Calls `action` in the namespace of the node.
    pub(super) fn at_node<T: Send>(&self, action: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        Ok(self.node.enter(action)?)
    }

    /// Frames that a program redirects to the generator's end of the link by which frames come in.
    pub(super) fn source(&self, frame: &[u8]) -> anyhow::Result<XdpSource> {
        Ok(self.generator.enter(|| XdpSource::new(interface_index("to-node")?, frame))??)
    }

    /// A program at the far end of the link by which frames leave: only with NAPI does a veth take redirected frames.
    pub(super) fn napi_at_the_far_end(&self) -> anyhow::Result<XdpYardstick> {
        let attach = || XdpYardstick::pass(interface_index("from-node")?);
        Ok(self.generator.enter(attach)??)
    }

    /// Has the kernel be the SRv6 node: SIDs, a policy, and the routes behind them.
    pub(super) fn kernel_forwards(&self) -> anyhow::Result<()> {
        self.node.set("ipv6/conf/all/forwarding", "1")?;
        let next_hop = NEXT_HOP.to_string();
        let mac = GENERATOR.to_string();
        self.node.run(&["ip", "-6", "neighbour", "add", &next_hop, "lladdr", &mac, "dev", "out"])?;
        self.node.run(&["ip", "-6", "route", "add", &next_hop, "dev", "out"])?;
        for route in next_segments() {
            self.node.run(&["ip", "-6", "route", "add", &route.to_string(), "via", &next_hop, "dev", "out"])?;
        }
        let end = ["encap", "seg6local", "action", "End"];
        let next_csid = ["flavors", "next-csid", "lblen", "32", "nflen", "16"];
        let end_dt6 = ["encap", "seg6local", "action", "End.DT6", "table", "main"];
        let segments = SEGMENTS.map(|segment| segment.to_string()).join(",");
        let encaps = ["encap", "seg6", "mode", "encap.red", "segs", &segments];
        let (sid, micro) = (SID.to_string(), sid_of_micro_n().to_string());
        let (sid_of_end_dt6, steered) = (SID_OF_END_DT6.to_string(), steered().to_string());
        self.node.run(&["ip", "sr", "tunsrc", "set", &LOOPBACK.to_string()])?;
        self.node.run(&[&["ip", "-6", "route", "add", &sid_of_end_dt6], &end_dt6[..], &["dev", "in"]].concat())?;
        self.node.run(&[&["ip", "-6", "route", "add", &steered], &encaps[..], &["dev", "in"]].concat())?;
        self.node.run(&[&["ip", "-6", "route", "add", &sid], &end[..], &["dev", "in"]].concat())?;
        self.node.run(&[&["ip", "-6", "route", "add", &micro], &end[..], &next_csid, &["dev", "in"]].concat())?;
        Ok(())
    }
}
