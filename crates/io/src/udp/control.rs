//! Control messages of `sendmsg` and `recvmsg`.

use std::ffi::c_int;

/// A control message with a value of at most eight octets, which is all that these sockets use: each takes the same
/// room, so that several are an array.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct ControlMessage {
    len: usize,
    level: c_int,
    kind: c_int,
    value: [u8; 8],
}

// SAFETY: the functions compute with their argument and nothing else.
const _: () = unsafe {
    assert!(size_of::<ControlMessage>() == libc::CMSG_SPACE(8) as usize);
    assert!(size_of::<ControlMessage>() == libc::CMSG_SPACE(2) as usize);
    assert!(size_of::<ControlMessage>() - 8 == libc::CMSG_LEN(0) as usize);
};

impl ControlMessage {
    pub(super) fn new(level: c_int, kind: c_int, value: &[u8]) -> Self {
        let mut place = [0; 8];
        place[..value.len()].copy_from_slice(value);
        ControlMessage { len: size_of::<Self>() - 8 + value.len(), level, kind, value: place }
    }

    pub(super) fn is(&self, level: c_int, kind: c_int) -> bool {
        (self.level, self.kind) == (level, kind)
    }

    /// The value, where it is one octet.
    pub(super) fn first(&self) -> u8 {
        self.value[0]
    }

    /// The value, where it is an integer of four octets.
    pub(super) fn integer(&self) -> u32 {
        let [a, b, c, d, ..] = self.value;
        u32::from_ne_bytes([a, b, c, d])
    }
}
