//! Choice of the driver of an interface.

use crate::af_xdp::AfXdp;
use crate::share::{Share, ShareGroup};
use crate::{AfPacket, Driver, DriverKind, Interest, Umem, XdpMode};
use std::io;

/// Choice of an interface's driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first that works: AF_XDP native, AF_XDP generic, AF_PACKET.
    #[default]
    Auto,
    /// AF_XDP native.
    Xdp,
    /// AF_XDP generic.
    XdpGeneric,
    /// AF_PACKET.
    Packet,
}

/// A driver, and why it is not a better one.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug)]
pub struct Opened {
    pub driver: Box<dyn Driver>,
    /// A line for each driver that was tried before and did not work.
    pub notes: Vec<String>,
    /// What further drivers of the interface join; `None` for one that takes all.
    pub group: Option<ShareGroup>,
}

/// The reason why an interface could not be opened.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such interface.
    #[error("interface {interface}: {source}; `ip link` lists those that are there")]
    NoInterface { interface: String, source: io::Error },
    /// Another process has its frames.
    #[error(
        "interface {interface} is in use by another process: {what}: {source}; end that process, or see which XDP \
         program is there with `ip link show {interface}`"
    )]
    InUse {
        interface: String,
        /// The operation that failed.
        what: &'static str,
        source: io::Error,
    },
    /// The kernel refused something else.
    #[error("interface {interface}: {kind}: {what}: {source}{hint}", hint = hint(source))]
    Refused {
        interface: String,
        kind: DriverKind,
        /// The operation that failed.
        what: &'static str,
        source: io::Error,
    },
}

/// Opens an interface in the namespace of the calling thread.
///
/// Without a [`Umem`] there is no AF_XDP.
///
/// # Errors
///
/// If no driver of the choice works, with the error of the last one; and at once when another process has the
/// interface.
pub fn open(interface: &str, choice: Choice, interest: &Interest, umem: Option<&Umem>) -> Result<Opened, OpenError> {
    open_share(interface, choice, &Share::All, interest, umem)
}

/// Opens an interface for a share of its frames.
///
/// # Errors
///
/// As [`open`].
pub fn open_share(
    interface: &str,
    choice: Choice,
    share: &Share,
    interest: &Interest,
    umem: Option<&Umem>,
) -> Result<Opened, OpenError> {
    let choice = match share {
        Share::All | Share::First(_) => choice,
        Share::Joining(ShareGroup::Queues(group), number) => match group.queues_of(*number).is_empty() {
            true => return open_share(interface, Choice::Packet, &Share::Sending, interest, umem),
            false if group.mode() == XdpMode::Native => Choice::Xdp,
            false => Choice::XdpGeneric,
        },
        Share::Joining(ShareGroup::Fanout(_), _) | Share::Sending => Choice::Packet,
    };
    let kinds: &[DriverKind] = match choice {
        Choice::Auto => &[DriverKind::XdpNative, DriverKind::XdpGeneric, DriverKind::Packet],
        Choice::Xdp => &[DriverKind::XdpNative],
        Choice::XdpGeneric => &[DriverKind::XdpGeneric],
        Choice::Packet => &[DriverKind::Packet],
    };
    let mut notes = Vec::new();
    let (last, others) = kinds.split_last().unwrap_or((&DriverKind::Packet, &[]));
    for kind in others {
        match open_as(*kind, interface, share, interest, umem) {
            Ok((driver, group)) => return Ok(Opened { driver, notes, group }),
            Err(error @ (OpenError::InUse { .. } | OpenError::NoInterface { .. })) => return Err(error),
            Err(error @ OpenError::Refused { .. }) => notes.push(error.to_string()),
        }
    }
    open_as(*last, interface, share, interest, umem).map(|(driver, group)| Opened { driver, notes, group })
}

fn open_as(
    kind: DriverKind,
    interface: &str,
    share: &Share,
    interest: &Interest,
    umem: Option<&Umem>,
) -> Result<(Box<dyn Driver>, Option<ShareGroup>), OpenError> {
    let mode = match kind {
        DriverKind::XdpNative => XdpMode::Native,
        DriverKind::XdpGeneric => XdpMode::Generic,
        DriverKind::Packet | DriverKind::Capture => return packet(interface, share, interest),
    };
    let no_memory = || io::Error::new(io::ErrorKind::Unsupported, "the pool does not lie in memory for it");
    let umem = umem.ok_or_else(|| OpenError::of(interface, kind, "registering memory", no_memory()))?;
    match share {
        Share::First(drivers) => {
            let (driver, group) = AfXdp::open_first(interface, mode, *drivers, interest, umem)?;
            Ok((Box::new(driver), Some(ShareGroup::Queues(group))))
        }
        Share::Joining(ShareGroup::Queues(group), number) => {
            let driver = AfXdp::join(interface, group, &group.queues_of(*number), interest, umem)?;
            Ok((Box::new(driver), Some(ShareGroup::Queues(group.clone()))))
        }
        Share::All | Share::Joining(ShareGroup::Fanout(_), _) | Share::Sending => {
            Ok((Box::new(AfXdp::open(interface, mode, interest, umem)?), None))
        }
    }
}

fn packet(
    interface: &str,
    share: &Share,
    interest: &Interest,
) -> Result<(Box<dyn Driver>, Option<ShareGroup>), OpenError> {
    match AfPacket::open_share(interface, share, interest) {
        Ok((driver, group)) => Ok((Box::new(driver), group.map(ShareGroup::Fanout))),
        Err(error) => Err(OpenError::of(interface, DriverKind::Packet, "opening a packet socket", error)),
    }
}

impl OpenError {
    pub(crate) fn no_interface(interface: &str, source: io::Error) -> Self {
        OpenError::NoInterface { interface: interface.to_owned(), source }
    }

    /// The error for a refusal, with its cause.
    pub(crate) fn of(interface: &str, kind: DriverKind, what: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            // EEXIST: a program is there that runs in the other mode.
            Some(libc::EBUSY | libc::EEXIST) => OpenError::InUse { interface, what, source },
            Some(libc::ENODEV) => OpenError::NoInterface { interface, source },
            _ => OpenError::Refused { interface, kind, what, source },
        }
    }
}

/// A remedy for an error.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "; this needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
        Some(libc::ENOSPC) => "; a veth must have as many receive queues as its peer has to transmit: `ethtool -L`",
        Some(libc::ENOTCONN) => "; the veth has no peer",
        Some(libc::EOPNOTSUPP) => "; the interface's driver does not run XDP itself",
        Some(libc::EAFNOSUPPORT) => "; the kernel was built without it",
        _ => "",
    }
}
