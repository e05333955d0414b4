//! A server and fetches of it, on the loopback interface.

use super::fetch::fetch;
use super::*;
use crate::buffer::Buffer;
use crate::digest::{DigestKind, Hasher};
use crate::manifest::{Entry, Manifest, Slots};
use std::cell::RefCell;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, TcpStream};

fn current(version: u64, octets: &[&[u8]]) -> Current {
    let mut offset = 0;
    let entries = octets.iter().enumerate().map(|(index, octets)| {
        let entry = Entry { name: format!("b{index}"), region: 0, offset, length_octets: octets.len() as u64 };
        offset += octets.len() as u64;
        entry
    });
    let entries = entries.collect();
    let slots = Slots { count: 2, octets: 4 << 20 };
    let manifest = Manifest::new(version, 3, slots, DigestKind::Sha256, entries).unwrap();
    let digest = |octets: &&[u8]| {
        let mut hasher = Hasher::new(DigestKind::Sha256);
        hasher.update(octets);
        hasher.finish()
    };
    let buffers = octets.iter().map(|octets| Buffer::new("b", octets.to_vec()).octets).collect();
    Current { manifest, digests: octets.iter().map(digest).collect(), buffers }
}

/// What has been fetched: version, octets of the slot, and whether it is whole.
#[derive(Debug, Default, PartialEq)]
struct Got {
    version: Option<u64>,
    octets: Vec<u8>,
    is_whole: bool,
}

fn get(server: &Server, key: &Key) -> (Got, Result<(), Option<FetchError>>) {
    let got = RefCell::new(Got::default());
    let pass = |piece| {
        let mut got = got.borrow_mut();
        match piece {
            Piece::Begin(manifest) => got.version = Some(manifest.version()),
            Piece::Octets { offset, octets, .. } => {
                assert_eq!(offset, got.octets.len() as u64);
                got.octets.extend(octets);
            }
            Piece::End => got.is_whole = true,
            Piece::Failed(_) => unreachable!("it is made by the caller"),
        }
        Ok(())
    };
    let result = fetch(address(server), key, &pass);
    (got.into_inner(), result)
}

fn address(server: &Server) -> SocketAddr {
    (Ipv6Addr::LOCALHOST, server.service().port).into()
}

fn key(server: &Server) -> Key {
    Key::parse(&server.service().key).unwrap()
}

/// D190
#[test]
fn the_version_that_was_published_last_is_fetched() {
    let server = Server::start(Ipv6Addr::LOCALHOST).unwrap();
    let key = key(&server);
    assert_eq!(get(&server, &key), (Got::default(), Err(None)), "none is published");
    let long: Vec<u8> = (0..PIECE_OCTETS * 3 + 5).map(|index| ((index * 7) >> 3) as u8).collect();
    server.replace(Some(current(7, &[&long, &[], b"x"])));
    let octets = [&long[..], b"x"].concat();
    assert_eq!(get(&server, &key), (Got { version: Some(7), octets, is_whole: true }, Ok(())));
    server.replace(Some(current(8, &[b"next"])));
    assert_eq!(get(&server, &key).0.octets, b"next");
}

/// A receiver that does not know the key gets no octet of the version.
#[test]
fn another_key_is_refused() {
    let server = Server::start(Ipv6Addr::LOCALHOST).unwrap();
    server.replace(Some(current(7, &[b"secret"])));
    assert_eq!(get(&server, &Key::new().unwrap()), (Got::default(), Err(Some(FetchError::Key))));
    assert!(Key::parse("00").is_none() && Key::parse(&"zz".repeat(32)).is_none());
}

/// Octets that have changed since the digests were computed are named.
#[test]
fn damaged_buffers_are_named() {
    let server = Server::start(Ipv6Addr::LOCALHOST).unwrap();
    let Current { manifest, digests, .. } = current(7, &[b"one", b"two"]);
    let buffers = [b"one", b"twp"].map(|octets| Buffer::new("b", octets.to_vec()).octets).into();
    server.replace(Some(Current { manifest, digests, buffers }));
    let (got, result) = get(&server, &key(&server));
    assert_eq!((got.is_whole, result), (false, Err(Some(FetchError::Damaged("b1".to_owned())))));
}

/// A version of 64 MiB: more than sockets have room for.
fn long_version() -> Current {
    let octets = vec![5; 64 << 20];
    let entries = vec![Entry { name: "b0".to_owned(), region: 0, offset: 0, length_octets: octets.len() as u64 }];
    let slots = Slots { count: 2, octets: octets.len() as u64 };
    let manifest = Manifest::new(7, 3, slots, DigestKind::Sha256, entries).unwrap();
    Current { manifest, buffers: vec![Buffer::new("b", octets).octets], ..current(7, &[&[5]]) }
}

/// A connection of a receiver that has asked for the version, and reads its status alone.
fn asking(server: &Server) -> (TcpStream, Option<Status>) {
    let mut stream = TcpStream::connect(address(server)).unwrap();
    let mut greeting = [0; HEAD_OCTETS + NONCE_OCTETS];
    stream.read_exact(&mut greeting).unwrap();
    let mac = key(server).mac(OF_REQUEST, &[&greeting[HEAD_OCTETS..], &head()]).finalize().into_bytes();
    stream.write_all(&[&head()[..], &mac].concat()).unwrap();
    let mut status = [0; 8];
    stream.read_exact(&mut status).unwrap();
    (stream, Status::from_code(status[0]))
}

/// Receivers and so memory are bounded; one that ends makes room.
#[test]
fn too_many_receivers_are_refused_as_busy() {
    let server = Server::start(Ipv6Addr::LOCALHOST).unwrap();
    server.replace(Some(long_version()));
    let served: Vec<_> = (0..8).map(|_| asking(&server)).collect();
    assert!(served.iter().all(|(_, status)| *status == Some(Status::Version)));
    assert_eq!(asking(&server).1, Some(Status::Busy));
    drop(served);
    let begin = std::time::Instant::now();
    while asking(&server).1 == Some(Status::Busy) {
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
}

/// Peers without the key take no place of a receiver, and are ended: after the time for a request, or at once when there
/// are too many.
#[test]
fn silent_peers_keep_no_receiver_out() {
    let server = Server::start(Ipv6Addr::LOCALHOST).unwrap();
    server.replace(Some(current(7, &[b"x"])));
    let connect = || TcpStream::connect(address(&server)).unwrap();
    let silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
    assert!(get(&server, &key(&server)).0.is_whole);
    let begin = std::time::Instant::now();
    let more: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
    let ends = |mut stream: TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // One octet after the other does not extend the time.
        while stream.write(&[0]).is_ok() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        begin.elapsed() < Duration::from_secs(60)
    };
    assert!(silent.into_iter().chain(more).all(ends));
    while !get(&server, &key(&server)).0.is_whole {
        assert!(begin.elapsed() < Duration::from_secs(120));
    }
}

/// When a version is replaced, a fetch of the former one ends, and nothing reads its buffers any more.
#[test]
fn a_fetch_ends_when_its_version_is_replaced() {
    struct Counted {
        octets: Vec<u8>,
        _owner: std::sync::Arc<()>,
    }
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.octets
        }
    }
    let server = Server::start(Ipv6Addr::LOCALHOST).unwrap();
    let owner = std::sync::Arc::new(());
    let octets = vec![5; 64 << 20];
    let mut former = long_version();
    former.buffers = vec![Buffer::new("b", Counted { octets, _owner: std::sync::Arc::clone(&owner) }).octets];
    server.replace(Some(former));
    let key = key(&server);
    let pieces = RefCell::new(0);
    let result = fetch(address(&server), &key, &|piece| {
        *pieces.borrow_mut() += 1;
        if matches!(piece, Piece::Octets { offset: 0, .. }) {
            server.replace(Some(current(8, &[b"next"])));
            assert_eq!(std::sync::Arc::strong_count(&owner), 1, "the buffer is the application's again");
        }
        Ok(())
    });
    assert_eq!(result, Err(None), "a later version comes with the group");
    assert!(*pieces.borrow() < 256);
    // A source that has ended is not reached.
    let gone = address(&server);
    drop(server);
    let result = fetch(gone, &key, &|_| Ok(()));
    assert!(matches!(result, Err(Some(FetchError::Unreachable(_)))), "{result:?}");
}
