//! Notifications to the service manager: sd_notify(3).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The service manager, if it has started the process and accepts notifications.
#[derive(Debug)]
pub(super) struct Supervisor(Option<UnixDatagram>);

impl Supervisor {
    /// The one that `NOTIFY_SOCKET` names.
    pub(super) fn of_environment() -> Self {
        let connect = |name: std::ffi::OsString| -> io::Result<UnixDatagram> {
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
                _ => SocketAddr::from_pathname(&name)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.connect_addr(&address)?;
            Ok(socket)
        };
        // A manager that cannot be reached has its own timeout, and logs it.
        Supervisor(std::env::var_os("NOTIFY_SOCKET").and_then(|name| connect(name).ok()))
    }

    /// The node does its job.
    pub(super) fn ready(&self) {
        self.notify("READY=1");
    }

    /// It makes progress, the data thread included: its watchdog need not end it.
    pub(super) fn alive(&self) {
        self.notify("WATCHDOG=1");
    }

    /// It reads its configuration again; [`Supervisor::ready`] follows.
    pub(super) fn reloading(&self) {
        self.notify("RELOADING=1");
    }

    /// It is about to end.
    pub(super) fn stopping(&self) {
        self.notify("STOPPING=1");
    }

    fn notify(&self, state: &str) {
        if let Some(socket) = &self.0 {
            // As above.
            let _ = socket.send(state.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_datagrams() {
        let (own, manager) = UnixDatagram::pair().expect("a pair");
        let supervisor = Supervisor(Some(own));
        supervisor.ready();
        supervisor.alive();
        let received = || {
            let mut octets = [0; 64];
            let len = manager.recv(&mut octets).expect("received");
            String::from_utf8_lossy(&octets[..len]).into_owned()
        };
        assert_eq!([received(), received()], ["READY=1", "WATCHDOG=1"]);
        Supervisor(None).alive();
    }
}
