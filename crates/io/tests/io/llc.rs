//! Frames with LLC between two ends of a link.

use srdma_io::LlcSocket;
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_wire::MacAddress;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const GROUP: MacAddress = MacAddress([0x09, 0x00, 0x2B, 0x00, 0x00, 0x05]);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// The ends of a link, and the indices of their interfaces.
fn link() -> ([NamespaceGuard; 2], [u32; 2]) {
    let ends = [(); 2].map(|()| NamespaceGuard::unique("srdma-t").unwrap());
    let end = |namespace, interface| VethEnd { namespace, interface, mac: None, addresses: &[] };
    veth(9000, [end(&ends[0], "v0"), end(&ends[1], "v1")]).unwrap();
    let index = |namespace: &NamespaceGuard, interface: &str| -> u32 {
        let path = format!("/sys/class/net/{interface}/ifindex");
        namespace.run(&["cat", &path]).unwrap().trim().parse().unwrap()
    };
    let indices = [index(&ends[0], "v0"), index(&ends[1], "v1")];
    (ends, indices)
}

fn frame(kind: [u8; 2], octets: usize) -> Vec<u8> {
    let mut frame = [&GROUP.0[..], &[2, 0, 0, 0, 0, 2], &kind, &[0xFE, 0xFE, 3]].concat();
    frame.resize(octets, 7);
    frame
}

/// Short and long frames arrive; frames with another EtherType, and those that the host sends, do not.
#[test]
#[ignore = "needs root"]
fn frames_with_llc_arrive_and_no_others() {
    let ([one, other], [of_one, of_other]) = link();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let sends = [frame([0, 46], 60), frame([0x88, 0xCC], 60), frame([0x88, 0x70], 9014), frame([0, 46], 61)];
    let wanted = [60, 9014, 61];
    let receiver = std::thread::spawn(move || {
        let receive = || {
            runtime().block_on(async {
                let mut socket = LlcSocket::open(of_one, &[GROUP]).unwrap();
                socket.send(&frame([0, 46], 99)).unwrap();
                ready.send(()).unwrap();
                let (mut buffer, mut lengths) = (vec![0; 16_384], Vec::new());
                while lengths.len() < wanted.len() {
                    let received = tokio::time::timeout(Duration::from_secs(60), socket.receive(&mut buffer));
                    let length = received.await.expect("a frame comes").unwrap();
                    assert_eq!(buffer[14..17], [0xFE, 0xFE, 3]);
                    lengths.push(length);
                }
                lengths.sort_unstable();
                assert_eq!(lengths, [60, 61, 9014]);
            });
        };
        one.enter(receive).unwrap();
        let groups = one.run(&["ip", "maddress", "show", "dev", "v0"]).unwrap();
        assert!(!groups.contains("09:00:2b:00:00:05"), "the group goes with the socket: {groups}");
    });
    is_ready.recv().unwrap();
    let send = || {
        runtime().block_on(async {
            let socket = LlcSocket::open(of_other, &[]).unwrap();
            sends.iter().for_each(|frame| socket.send(frame).unwrap());
        });
    };
    other.enter(send).unwrap();
    receiver.join().unwrap();
}

/// Short ones that wait do not hold up a long one.
#[test]
#[ignore = "needs root"]
fn short_and_long_frames_take_turns() {
    let ([one, other], [of_one, of_other]) = link();
    let runtime = runtime();
    let open = |namespace: &NamespaceGuard, index| {
        let open = || {
            let _inside = runtime.enter();
            LlcSocket::open(index, &[GROUP]).unwrap()
        };
        namespace.enter(open).unwrap()
    };
    let (mut receiver, sender) = (open(&one, of_one), open(&other, of_other));
    (0..5).for_each(|_| sender.send(&frame([0, 46], 60)).unwrap());
    sender.send(&frame([0x88, 0x70], 9014)).unwrap();
    let mut buffer = vec![0; 16_384];
    let mut receive = || runtime.block_on(receiver.receive(&mut buffer)).unwrap();
    let lengths = [receive(), receive()];
    assert!(lengths.contains(&60) && lengths.contains(&9014), "{lengths:?}");
}
