//! Soft-RoCE guests: small virtual machines whose RDMA stack is the one of an unmodified Linux kernel.
//!
//! ```text
//!   namespace of the guest's node
//!   ┌──────────────────────────────────────────────────────┐
//!   │  [interface]──[guest-bridge]──[guest-tap]── QEMU ────┼── serial ports: sockets in the lab's directory
//!   └──────────────────────────────────────────────────────┘
//! ```
//!
//! An [`Image`] is what they boot. A [`Guest`] is one of them; it has two serial ports, each with a [`Shell`] that can
//! be turned into a [`Peer`], the RDMA program. Nothing but RoCE and neighbour discovery passes its network interface.
//!
//! QEMU emulates the processor. That is slow, but works wherever a lab does, and is the same everywhere.

mod channel;
mod host;
mod image;
mod load;
mod peer;
mod shell;
mod unicast;

pub(crate) use host::GuestHost;
pub use image::{BUILD_COMMANDS, Image, missing};
pub use peer::{Peer, PeerOptions, QueuePair, Work};
pub use shell::Shell;
pub use unicast::{Unicast, unicast};

use crate::command;
use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::network::Side;
use crate::process::{self, Process};
use crate::topology::{Link, Topology};
use channel::Channel;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Commands that running a guest needs, and their packages.
pub const RUN_COMMANDS: [(&str, &str); 2] = [("qemu-system-x86_64", "qemu-system-x86"), ("ip", "iproute2")];

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time to wait for another user of a serial port.
const PORT_PATIENCE: Duration = Duration::from_secs(30);

/// Description of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPlan {
    /// Its node, in whose namespace QEMU runs.
    pub node: String,
    /// The interface there that becomes the guest's. It must have no address.
    pub interface: String,
    /// The guest's addresses, a global one first, and the lengths of the prefixes that it takes for on-link.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its default gateways, one of each version at most.
    pub gateways: Vec<IpAddr>,
    /// The MTU of its interface.
    pub mtu: u32,
}

impl GuestPlan {
    /// The guest at a node of a topology. Its addresses are the node's first address, the link-local address of its end
    /// of the link, which is the next hop of routes to it, and others of that end; the far end is its gateway. `None`
    /// for a node without link or address.
    pub fn of(topology: &Topology, node: usize) -> Option<Self> {
        let at_node = |link: &Link| Side::BOTH.into_iter().find(|side| side.of(link).node == node);
        let (link, side) = topology.links.iter().find_map(|link| Some((link, at_node(link)?)))?;
        let address = *topology.nodes[node].addresses.first()?;
        let more = side.of(link).addresses.iter().copied();
        let ipv4 = topology.ipv4_gateway(node).map(IpAddr::from);
        Some(GuestPlan {
            node: topology.nodes[node].name.clone(),
            interface: side.of(link).interface.clone(),
            addresses: [(address.into(), 128), (side.link_local().into(), 64)].into_iter().chain(more).collect(),
            gateways: [side.other().link_local().into()].into_iter().chain(ipv4).collect(),
            mtu: link.mtu,
        })
    }
}

/// A serial port of a guest. Each has one user at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// For the lab's transfers.
    Lab,
    /// Interactive.
    Shell,
}

impl Port {
    const ALL: [Port; 2] = [Port::Lab, Port::Shell];

    fn name(self) -> &'static str {
        match self {
            Port::Lab => "lab",
            Port::Shell => "shell",
        }
    }
}

/// A guest: the process that runs it and where its files are.
#[derive(Clone, Debug)]
pub struct Guest {
    process: Process,
    directory: PathBuf,
}

impl Guest {
    /// Starts a guest. It takes some seconds until it has booted; [`Guest::wait`] waits for that, so that several can
    /// boot at a time.
    ///
    /// # Errors
    ///
    /// If a program or `/dev/net/tun` is missing, or a command fails.
    pub fn start(lab: &mut Lab, image: &Image, plan: &GuestPlan) -> Result<Self> {
        image::require("running soft-RoCE guests", &RUN_COMMANDS)?;
        if !Path::new("/dev/net/tun").exists() {
            let problem = "there is no /dev/net/tun: load the module (modprobe tun), or give it to the container";
            return Err(LabError::Unexpected {
                who: "running soft-RoCE guests".to_owned(),
                problem: problem.to_owned(),
            });
        }
        let directory = directory(lab.instance(), &plan.node);
        fs::create_dir_all(&directory).map_err(LabError::file("make", &directory))?;
        attach(&lab.instance().namespace(&plan.node), &plan.interface, plan.mtu)?;
        let process = lab.start(&plan.node, &plan.node, &qemu(image, plan, &directory))?;
        Ok(Guest { process, directory })
    }

    /// The guest that runs at a node.
    ///
    /// # Errors
    ///
    /// If none does.
    pub fn at(lab: &Lab, node: usize) -> Result<Self> {
        let name = &lab.topology().nodes[node].name;
        match lab.processes().iter().find(|process| process.name == *name) {
            Some(process) if process.is_running() => {
                Ok(Guest { process: process.clone(), directory: directory(lab.instance(), name) })
            }
            _ => Err(LabError::Unexpected { who: name.clone(), problem: "no guest runs there".to_owned() }),
        }
    }

    /// The process that runs it.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The file with its console output.
    pub fn console(&self) -> PathBuf {
        self.directory.join("console")
    }

    /// Waits until it has booted and has its RDMA device.
    ///
    /// # Errors
    ///
    /// If it ends before, or needs more than `limit`: then with the last lines of its console.
    pub fn wait(&self, limit: Duration, interrupt: &Interrupt) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let is_running = self.process.is_running();
            let console = fs::read_to_string(self.console()).unwrap_or_default();
            if console.lines().any(|line| line.starts_with("READY ")) {
                return Ok(());
            }
            if !is_running {
                return Err(self.ended("boot"));
            }
            if Instant::now() > deadline {
                let (log, tail) = self.last_words();
                let (process, what) = (format!("guest {}", self.process.node), "boot".to_owned());
                return Err(LabError::Late { process, what, waited_s: limit.as_secs(), log, tail });
            }
            interrupt.sleep(POLL_INTERVAL)?;
        }
    }

    /// A shell at one of its serial ports.
    ///
    /// # Errors
    ///
    /// If the guest has ended, or the port is in use.
    pub fn shell(&self, port: Port) -> Result<Shell> {
        let deadline = Instant::now() + PORT_PATIENCE;
        let mut check = || match self.process.is_running() {
            true => Ok(()),
            false => Err(self.ended("answer")),
        };
        Channel::open(&self.process.node, &self.socket(port), deadline, &mut check).map(Shell::new)
    }

    /// The socket that is a serial port.
    pub fn socket(&self, port: Port) -> PathBuf {
        socket(&self.directory, port)
    }

    fn ended(&self, what: &str) -> LabError {
        let (log, tail) = self.last_words();
        LabError::Ended { process: format!("guest {}", self.process.node), what: what.to_owned(), log, tail }
    }

    /// The end of its console; of QEMU's own log, if it got no further than that.
    fn last_words(&self) -> (PathBuf, String) {
        let console = self.console();
        let has_spoken = fs::metadata(&console).is_ok_and(|metadata| metadata.len() > 0);
        let log = if has_spoken { console } else { self.process.log.clone() };
        let tail = process::tail(&log);
        (log, tail)
    }
}

fn directory(instance: &Instance, node: &str) -> PathBuf {
    instance.directory().join("guest").join(node)
}

fn socket(directory: &Path, port: Port) -> PathBuf {
    directory.join(port.name())
}

/// Joins the node's interface to a tap for QEMU.
fn attach(namespace: &str, interface: &str, mtu: u32) -> Result<()> {
    // QEMU takes a tap only, and what a node's interface is like is the lab's business.
    let lines = [
        format!("ip -n {namespace} tuntap add dev guest-tap mode tap"),
        format!("ip -n {namespace} link add guest-bridge type bridge mcast_snooping 0"),
        format!("ip -n {namespace} link set guest-tap mtu {mtu} addrgenmode none master guest-bridge up"),
        format!("ip -n {namespace} link set {interface} addrgenmode none master guest-bridge up"),
        format!("ip -n {namespace} link set guest-bridge mtu {mtu} addrgenmode none up"),
    ];
    lines.iter().try_for_each(|line| command::run(line).map(drop))
}

fn qemu(image: &Image, plan: &GuestPlan, directory: &Path) -> Vec<String> {
    let GuestPlan { node, addresses, gateways, mtu, .. } = plan;
    let list: Vec<String> = addresses.iter().map(|(address, length)| format!("{address}/{length}")).collect();
    // The first options make the boot short. Those of the clock make it right: a busy machine lets the guest measure
    // its processor's clock wrongly, even eightfold, while the rates of the HPET are known.
    let mut kernel_line = format!(
        "console=ttyS0 quiet panic=-1 mitigations=off cryptomgr.notests nokaslr \
         tsc=unstable noapictimer no_timer_check \
         host={node} addresses={} mtu={mtu}",
        list.join(",")
    );
    let list: Vec<String> = gateways.iter().map(IpAddr::to_string).collect();
    if !list.is_empty() {
        kernel_line += &format!(" gateways={}", list.join(","));
    }
    let octets = |address: &IpAddr| match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
    };
    let [.., a, b, c] = addresses.first().map_or([0; 16], |(address, _)| octets(address));
    let mac = format!("52:54:00:{a:02x}:{b:02x}:{c:02x}");
    let mut words: Vec<String> = [
        "qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -machine pc,usb=off -accel tcg -cpu max -smp 1",
        &format!("-m {} -display none", image.memory_mib),
        // Checksums and segments are made by the guest: the wire is to carry what a wire carries.
        "-netdev tap,id=network,ifname=guest-tap,script=no,downscript=no,vnet_hdr=off",
        &format!("-device virtio-net-pci,netdev=network,mac={mac},romfile="),
        "-device virtio-serial-pci",
    ]
    .iter()
    .flat_map(|line| line.split(' '))
    .map(str::to_owned)
    .collect();
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-serial", format!("file:{}", directory.join("console").display()));
    for port in Port::ALL {
        let (name, path) = (port.name(), socket(directory, port));
        push("-chardev", format!("socket,id={name},path={},server=on,wait=off", path.display()));
        push("-device", format!("virtserialport,chardev={name}"));
    }
    push("-kernel", image.kernel.display().to_string());
    push("-initrd", image.initrd.display().to_string());
    push("-append", kernel_line);
    words
}
