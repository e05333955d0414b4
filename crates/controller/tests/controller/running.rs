//! A running controller, and the client of the tests.

use srdma_api::{Client, Group, GroupState, MemoryRegion, NewGroup, NewReceiver, SourceAddress, SourceRegion};
use srdma_controller::{Config, OnDisk, Server, Store, StoreError};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A controller in threads of its own. Dropping it ends it as `kill -9` does.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

pub(crate) fn config() -> Config {
    Config { listen: vec!["[::1]:0".parse().unwrap()], node_dead_after_ms: 10_000, ..Config::default() }
}

impl Running {
    pub(crate) fn on_disk(file: &Path) -> Self {
        Self::with(config(), file)
    }

    /// The same with another configuration.
    pub(crate) fn with(config: Config, file: &Path) -> Self {
        Self::start(config, Arc::new(opened(file)), None)
    }

    pub(crate) fn start(config: Config, store: Arc<dyn Store>, rebuilds: Option<u64>) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::start(config, store, rebuilds, || std::process::exit(1))).unwrap();
        let address = server.addresses()[0];
        runtime.spawn(server.run(std::future::pending()));
        Running { address, runtime: Some(runtime) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address), None, None).unwrap()
    }

    /// Sends raw octets; returns everything received until the server closes the connection or the timeout.
    pub(crate) fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A server that rejects the request may stop reading.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

/// Opens the store as soon as the former controller has closed it.
pub(crate) fn opened(file: &Path) -> OnDisk {
    until("the store is free", || match OnDisk::open(file) {
        Err(StoreError::InUse { .. }) => None,
        opened => Some(opened.unwrap()),
    })
}

pub(crate) fn receiver_address(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, number)
}

/// Figure 1's group, with another Proxy Address and source queue pair for each number.
pub(crate) fn new_group(number: u16) -> NewGroup {
    let source = SourceAddress { address: "2001:db8:aa::1".parse().unwrap(), qpn: 0x100 + u32::from(number) };
    NewGroup {
        proxy: Some(Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, number)),
        initial_psn: 0xff_fff0,
        region: Some(SourceRegion { base: 0x10_0000, length: 1 << 30, rkey: 7 }),
        ..NewGroup::new(source, 0xd0_0000)
    }
}

pub(crate) fn new_receiver(number: u16) -> NewReceiver {
    let region = MemoryRegion { virtual_address: u64::from(number) << 32, rkey: u32::from(number) };
    NewReceiver { region: Some(region), ..NewReceiver::new(0x1000 + u32::from(number), 4096) }
}

pub(crate) fn create(client: &Client, number: u16) -> Group {
    client.post("/v1/groups", &new_group(number), None).unwrap().value
}

pub(crate) fn join(client: &Client, group: u32, number: u16) {
    let path = format!("/v1/groups/{group}/receivers/{}", receiver_address(number));
    client.put::<srdma_api::Receiver>(&path, &new_receiver(number)).unwrap();
}

pub(crate) fn commit(client: &Client, group: u32) -> Group {
    let request = srdma_api::CommitRequest { wait_ms: 60_000 };
    client.post(&format!("/v1/groups/{group}/commit"), &request, None).unwrap().value
}

pub(crate) fn show(client: &Client, group: u32) -> Group {
    client.get(&format!("/v1/groups/{group}")).unwrap().value
}

/// Polls until there is a value, for a minute.
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn until_ready(client: &Client, group: u32) -> Group {
    until("the group is ready", || Some(show(client, group)).filter(|group| group.summary.state == GroupState::Ready))
}
