//! What an interface can do with frames that are redirected to it, from the netdev family of generic netlink (Linux
//! 6.3, `Documentation/netlink/specs/netdev.yaml`; D237).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Identifier of the control family, its request for a family, and the attributes of that.
const CONTROL_FAMILY: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Request of the netdev family for an interface, and the attributes of that.
const GET_DEVICE: u8 = 1;
const INTERFACE_INDEX: u16 = 1;
const XDP_FEATURES: u16 = 3;

/// Bits of the features: frames may be redirected to the interface, and those of several buffers.
const TAKES_FRAMES: u64 = 1 << 2;
const TAKES_SEVERAL_BUFFERS: u64 = 1 << 6;

const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const NETLINK_HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;

/// Whether an interface takes frames that an XDP program redirects to it, of any number of buffers. A veth does while
/// its peer has NAPI: by an XDP program, or by GRO.
///
/// # Errors
///
/// If the kernel does not tell, as before Linux 6.3, or the interface is gone.
pub fn takes_redirected_frames(interface_index: u32) -> io::Result<bool> {
    let socket = Socket::new()?;
    let family = socket.ask(CONTROL_FAMILY, GET_FAMILY, FAMILY_NAME, b"netdev\0")?;
    let family = attribute(&family, FAMILY_ID).and_then(|octets| octets.first_chunk().copied());
    let family = u16::from_ne_bytes(family.ok_or_else(unreadable)?);
    let device = socket.ask(family, GET_DEVICE, INTERFACE_INDEX, &interface_index.to_ne_bytes())?;
    let features = attribute(&device, XDP_FEATURES).and_then(|octets| octets.first_chunk().copied());
    let features = u64::from_ne_bytes(features.ok_or_else(unreadable)?);
    Ok(features & TAKES_FRAMES != 0 && features & TAKES_SEVERAL_BUFFERS != 0)
}

fn unreadable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer about an interface has not the expected form")
}

struct Socket(OwnedFd);

impl Socket {
    fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_GENERIC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and not owned elsewhere.
        Ok(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends a request with one attribute; returns the attributes of the answer, which the kernel has ready at once.
    fn ask(&self, family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
        let request = request(family, command, kind, value);
        // SAFETY: the octets live through the call and have the given length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = vec![0u8; 8192];
        // SAFETY: as above.
        let received =
            unsafe { libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT) };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        answer.truncate(received as usize);
        attributes_of(&answer).map(<[u8]>::to_vec)
    }
}

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let len = 4 + value.len();
    let total = NETLINK_HEADER + GENERIC_HEADER + len.next_multiple_of(4);
    let mut octets = Vec::with_capacity(total);
    octets.extend_from_slice(&(total as u32).to_ne_bytes());
    octets.extend_from_slice(&family.to_ne_bytes());
    octets.extend_from_slice(&REQUEST.to_ne_bytes());
    // Sequence number and port, which do not matter for one request at a time.
    octets.extend_from_slice(&[0; 8]);
    octets.extend_from_slice(&[command, 1, 0, 0]);
    octets.extend_from_slice(&(len as u16).to_ne_bytes());
    octets.extend_from_slice(&kind.to_ne_bytes());
    octets.extend_from_slice(value);
    octets.resize(total, 0);
    octets
}

/// The attributes of a message, unless it is an error.
fn attributes_of(message: &[u8]) -> io::Result<&[u8]> {
    let header: &[u8; NETLINK_HEADER] = message.first_chunk().ok_or_else(unreadable)?;
    let body = &message[NETLINK_HEADER..];
    if u16::from_ne_bytes([header[4], header[5]]) == ERROR {
        let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
        return Err(io::Error::from_raw_os_error(-code));
    }
    body.get(GENERIC_HEADER..).ok_or_else(unreadable)
}

/// The value of an attribute.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (header, _) = attributes.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = attributes.get(4..len)?;
        if u16::from_ne_bytes([header[2], header[3]]) == wanted {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_whatever_stands_around_them() {
        let message = request(20, 1, 7, &[1, 2, 3]);
        assert_eq!(message.len(), 16 + 4 + 8);
        let mut attributes = attributes_of(&message).expect("no error").to_vec();
        attributes.extend_from_slice(&[6, 0, 9, 0, 4, 5, 0, 0]);
        assert_eq!(attribute(&attributes, 7), Some(&[1, 2, 3][..]));
        assert_eq!(attribute(&attributes, 9), Some(&[4, 5][..]));
        assert_eq!(attribute(&attributes, 8), None);
        for cut in 0..attributes.len() {
            // No octets are read beyond the end, and there is no loop.
            attribute(&attributes[..cut], 8);
            attribute(&[0, 0, 1, 0], 8);
        }
    }

    #[test]
    fn errors_of_the_kernel_are_errors() {
        let mut message = request(ERROR, 0, 0, &[]);
        message[16..20].copy_from_slice(&(-libc::ENODEV).to_ne_bytes());
        assert_eq!(attributes_of(&message).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert!(attributes_of(&message[..10]).is_err());
    }
}
