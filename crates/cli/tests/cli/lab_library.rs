//! The host library in the lab `figure1-controller`: a source and receivers that use its groups, each in the namespace of
//! its host.

use crate::own_lab::{ControllerAccess, Lab};
use srdma::{Buffer, Device, DeviceOptions, Error, Event, GroupOptions, JoinOptions, Over, Receiver, Source, Version};
use srdma_io::namespace::Namespace;
use std::time::{Duration, Instant};

const NAME: &str = "figure1-controller";
const PATIENCE: Duration = Duration::from_secs(60);
const MIB: usize = 1 << 20;

/// The octets of a buffer, which depend on version and number alone.
fn content(version: u64, number: u64, octets: usize) -> Vec<u8> {
    let word = |place: u64| (version << 48 ^ number << 40 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    let mut content: Vec<u8> = (0..octets as u64 / 8 + 1).flat_map(word).collect();
    content.truncate(octets);
    content
}

const LENGTHS: [usize; 3] = [3 * MIB, 1, MIB - 77];

fn buffers(version: u64) -> Vec<Buffer> {
    let buffer = |(number, octets): (usize, &usize)| {
        Buffer::new(format!("tensor {number}"), content(version, number as u64, *octets))
    };
    LENGTHS.iter().enumerate().map(buffer).collect()
}

#[track_caller]
fn check(version: &Version) {
    for (number, octets) in LENGTHS.iter().enumerate() {
        let found = version.buffer(&format!("tensor {number}")).expect("a buffer of this name");
        assert!(found == content(version.number(), number as u64, *octets), "{version:?}, buffer {number}");
    }
}

struct Network {
    lab: Lab,
    access: ControllerAccess,
}

impl Network {
    fn start() -> Self {
        let lab = Lab::new(NAME, &[]);
        let up = lab.command("up", &[]);
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        let access = lab.controller();
        Network { lab, access }
    }

    /// Runs `action` in the namespace of a host; threads that it starts stay there.
    fn at<T: Send>(&self, host: &str, action: impl FnOnce(&Device) -> T + Send) -> T {
        let name = format!("srdma-{NAME}-{}-{host}", self.lab.suffix);
        let namespace = Namespace::existing(&name).expect("the lab is up");
        let ControllerAccess([url, token_file, ca_file]) = &self.access;
        let options = DeviceOptions {
            token_file: Some(token_file.into()),
            ca_file: Some(ca_file.into()),
            ..DeviceOptions::new(url)
        };
        let action = || action(&Device::open(&options).expect("a device"));
        namespace.enter(action).expect("the namespace can be entered")
    }

    fn source(&self, options: &GroupOptions) -> Source {
        let options = GroupOptions { proxy: Some("2001:db8:cc::1".parse().expect("an address")), ..options.clone() };
        self.at("S1", |device| device.create_group(&options)).expect("a group")
    }

    fn receiver(&self, host: &str, source: &Source) -> Receiver {
        self.at(host, |device| device.join(source.group(), JoinOptions::default())).expect("a receiver")
    }

    fn commit(&self, source: &Source, receivers: u32) {
        self.at("S1", |_| source.commit(receivers, PATIENCE)).expect("committed");
    }
}

/// All events so far.
fn events(next: impl Fn() -> srdma::Result<Option<Event>>) -> Vec<Event> {
    std::iter::from_fn(|| next().expect("this process")).collect()
}

/// Five receivers see each version whole, one of them slowly; a sixth joins meanwhile, and sees the next ones.
#[test]
#[ignore = "needs root"]
fn versions_reach_every_receiver_whole_and_in_order() {
    let network = Network::start();
    let options = GroupOptions {
        slow_after: Duration::from_millis(300),
        ..GroupOptions::for_buffers(LENGTHS.map(|octets| octets as u64))
    };
    let source = network.source(&options);
    let receivers = ["R1", "R2", "R3", "R4", "R5"].map(|host| network.receiver(host, &source));
    let begin = Instant::now();
    source.publish(10, buffers(10)).expect("taken");
    network.commit(&source, 5);
    source.wait(10, PATIENCE).expect("published");
    println!("the first version after {:?}", begin.elapsed());
    for receiver in &receivers {
        let version = receiver.next_version(PATIENCE).expect("whole");
        check(&version);
        assert_eq!(version.number(), 10);
        assert_eq!(events(|| receiver.next_event()), [Event::Joined, Event::Version { version: 10 }]);
    }

    // R3 keeps two versions, as many as there are slots, and so holds the source.
    let begin = Instant::now();
    for version in 11..=14 {
        source.publish(version, buffers(version)).expect("taken");
    }
    let held = [11, 12].map(|number| receivers[2].wait(number, PATIENCE).expect("whole"));
    for index in [0, 1, 3, 4] {
        [11, 12].iter().for_each(|number| check(&receivers[index].wait(*number, PATIENCE).expect("whole")));
    }
    source.wait(12, PATIENCE).expect("published");
    println!("two versions of {} octets after {:?}", LENGTHS.iter().sum::<usize>(), begin.elapsed());
    let late = source.wait(13, Duration::from_secs(1));
    assert!(matches!(late, Err(Error::Timeout)), "{late:?}");
    let expected = [10, 11, 12].map(|version| Event::Published { version });
    let found = events(|| source.next_event());
    assert_eq!(found[..3], expected);
    assert_eq!(found[3..], [Event::Slow { version: 13 }]);
    held.iter().for_each(check);
    drop(held);
    source.wait(14, PATIENCE).expect("published");
    for receiver in &receivers {
        for number in 13..=14 {
            let version = receiver.next_version(PATIENCE).expect("whole");
            check(&version);
            assert_eq!(version.number(), number);
        }
    }

    // R6 joins between two versions: the pause waits for the end of the one on its way.
    let sixth = network.receiver("R6", &source);
    for version in 15..=40 {
        source.publish(version, buffers(version)).expect("taken");
        source.wait(version, PATIENCE).expect("published");
        for receiver in &receivers {
            check(&receiver.wait(version, PATIENCE).expect("whole"));
        }
        if events(|| sixth.next_event()).contains(&Event::Joined) {
            break;
        }
    }
    source.publish(50, buffers(50)).expect("taken");
    let first = sixth.next_version(PATIENCE).expect("whole");
    check(&first);
    let rejected = events(|| sixth.next_event());
    assert!(!rejected.iter().any(|event| matches!(event, Event::Rejected { .. })), "{rejected:?}");
    source.wait(50, PATIENCE).expect("published");

    // The end of the group: what is whole is still there to take.
    drop(first);
    network.at("S1", |_| source.close()).expect("closed");
    for receiver in receivers {
        let over = loop {
            match receiver.next_version(PATIENCE) {
                Ok(version) => check(&version),
                Err(error) => break error,
            }
        };
        assert!(matches!(over, Error::Over(Over::GroupClosed)), "{over}");
    }
}
