//! UDP sockets of endpoints that share an address.

use srdma_io::namespace::NamespaceGuard;
use srdma_io::udp::{Message, ReceiveBatch, Segmentation, UdpSocket};
use std::collections::BTreeSet;
use std::io::{ErrorKind, IoSlice};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::time::Duration;

const PORT: u16 = 4791;

fn toward(address: Ipv6Addr, peer: Ipv6Addr) -> std::io::Result<UdpSocket> {
    UdpSocket::bind_toward(address, PORT, peer, Segmentation::Software)
}

/// What comes to a socket until nothing more does, with the source of each.
fn received(socket: &UdpSocket) -> Vec<(SocketAddrV6, Vec<u8>)> {
    let mut batch = ReceiveBatch::new();
    socket.wait(false, None, Some(Duration::from_secs(60))).unwrap();
    socket.receive(&mut batch).unwrap();
    batch.datagrams().map(|it| (it.source, it.octets[ReceiveBatch::HEADROOM..].to_vec())).collect()
}

#[test]
fn ports_that_the_kernel_chooses_are_free() {
    let any = || UdpSocket::bind_toward(Ipv6Addr::LOCALHOST, 0, Ipv6Addr::LOCALHOST, Segmentation::Software);
    // 380 sockets among 28,232 ports: by chance alone at least two of them would meet in 92 of 100 runs.
    let sockets: Vec<_> = (0..380).map(|_| any().expect("a free port")).collect();
    let ports: BTreeSet<u16> = sockets.iter().map(|it| it.local().port()).collect();
    assert_eq!(ports.len(), sockets.len());
}

#[test]
#[ignore = "needs root"]
fn sockets_of_an_address_receive_from_their_peers() {
    let guard = NamespaceGuard::unique("srdma-t").unwrap();
    guard.run(&["ip", "link", "set", "lo", "up"]).unwrap();
    let [host, first, second, third] = [0x10, 1, 2, 3].map(|last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last));
    for address in [host, first, second, third] {
        guard.run(&["ip", "address", "add", &format!("{address}/128"), "dev", "lo"]).unwrap();
    }
    guard
        .enter(|| {
            let sockets = [first, second].map(|peer| (peer, toward(host, peer).unwrap()));
            // Any port of a peer, and no other peer: the kernel refuses what comes from the third.
            for port in [PORT, 50_000, 60_000] {
                for peer in [third, second, first] {
                    let sender = std::net::UdpSocket::bind((peer, port)).unwrap();
                    sender.send_to(peer.to_string().as_bytes(), (host, PORT)).unwrap();
                }
            }
            for (peer, socket) in &sockets {
                let expected = [PORT, 50_000, 60_000]
                    .map(|port| (SocketAddrV6::new(*peer, port, 0, 0), peer.to_string().into_bytes()));
                assert_eq!(received(socket), expected);
                // Its own packets go to the port that they name.
                let answers = UdpSocket::bind(*peer, 50_001, Segmentation::Software).unwrap();
                let packets = [IoSlice::new(b"answer")];
                let destination = SocketAddrV6::new(*peer, 50_001, 0, 0);
                assert_eq!(socket.send(&[Message { destination, traffic_class: 0, packets: &packets }]).unwrap(), 1);
                assert_eq!(received(&answers), [(SocketAddrV6::new(host, PORT, 0, 0), b"answer".to_vec())]);
            }
            assert_eq!(toward(host, first).unwrap_err().kind(), ErrorKind::AddrInUse, "the pair has a socket");
            let alone = UdpSocket::bind(host, PORT, Segmentation::Software);
            assert_eq!(alone.unwrap_err().kind(), ErrorKind::AddrInUse);
            drop(sockets);
            toward(host, first).expect("the pair is free again");
            let _alone = UdpSocket::bind(host, PORT, Segmentation::Software).expect("and so is the port");
            assert_eq!(toward(host, first).unwrap_err().kind(), ErrorKind::AddrInUse, "the port has a socket");
            let unreachable = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
            assert_eq!(toward(first, unreachable).unwrap_err().kind(), ErrorKind::NetworkUnreachable);
        })
        .unwrap();
}
