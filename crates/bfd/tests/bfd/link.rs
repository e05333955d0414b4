//! Two systems over a link that loses, delays, duplicates, reorders and damages packets, in virtual time. Every rule is
//! checked by the packets on the link, not by what the sessions say about themselves.

use crate::support::at_ms;
use srdma_bfd::udp;
use srdma_bfd::{Config, Control, ControlPacket, Event, Hops, Output, Peer, Sessions, State};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// What one direction does to packets.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    /// In thousandths.
    lost: u64,
    duplicated: u64,
    damaged: u64,
    /// Delays in milliseconds, from and to.
    delay_ms: (u64, u64),
}

const CLEAN: Faults = Faults { lost: 0, duplicated: 0, damaged: 0, delay_ms: (2, 2) };
const CUT: Faults = Faults { lost: 1_000, ..CLEAN };

/// What the test knows of one system from the packets that it has sent and was given.
#[derive(Clone, Debug, Default)]
struct Observed {
    /// Time of the last packet that was taken, and the time without one after which the system may not be Up.
    heard: Option<(Instant, u64)>,
    polls_taken: u64,
    finals_sent: u64,
    last: Option<Control>,
    last_ordinary: Option<Instant>,
    last_out_of_turn: Option<Instant>,
    events: Vec<(Instant, Event)>,
}

struct Net {
    systems: [Sessions; 2],
    configs: [Config; 2],
    observed: [Observed; 2],
    /// Of the direction from each system.
    faults: [Faults; 2],
    /// Number of packets of each system that are lost next.
    lost_next: [u64; 2],
    on_the_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    now: Instant,
    random: Stream,
    /// Whether the configurations stay, so that intervals are known from them.
    is_constant: bool,
}

impl Net {
    fn new(seed: u64, configs: [Config; 2]) -> Self {
        let addresses = ["fe80::a", "fe80::b"].map(|text| text.parse().unwrap());
        let system = |number: usize| {
            let mut sessions = Sessions::new(1, seed * 2 + number as u64);
            let hops = Hops::Single { interface: 1 };
            let peer = Peer { hops, local: addresses[number], remote: addresses[1 - number] };
            sessions.add(peer, configs[number], Instant::ZERO).unwrap();
            sessions
        };
        Net {
            systems: [system(0), system(1)],
            configs,
            observed: Default::default(),
            faults: [CLEAN; 2],
            lost_next: [0; 2],
            on_the_way: BTreeMap::new(),
            sent: 0,
            now: Instant::ZERO,
            random: Stream::new(seed, "link"),
            is_constant: true,
        }
    }

    fn state(&self, system: usize) -> State {
        self.systems[system].iter().next().unwrap().1.state()
    }

    fn are_up(&self) -> bool {
        [0, 1].into_iter().all(|system| self.state(system) == State::Up)
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        self.random.below(1_000) < per_mille
    }

    /// Runs up to `end`, which becomes the present; `see` after each step.
    fn run(&mut self, end: Instant, mut see: impl FnMut(&Net)) {
        loop {
            let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
            let deadlines = self.systems.iter().filter_map(Sessions::next_deadline);
            let next = deadlines.chain(arrival).min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, octets) = entry.remove();
                self.deliver(to, &octets);
            }
            (0..2).for_each(|system| self.drain(system));
            (0..2).for_each(|system| self.check_detection(system));
            see(self);
        }
        self.now = end;
    }

    fn drain(&mut self, system: usize) {
        while let Some(output) = self.systems[system].poll(self.now) {
            match output {
                Output::Event(_, event) => self.observed[system].events.push((self.now, event)),
                Output::Packet { peer, source_port, control } => {
                    self.check_rate(system, &control);
                    self.transmit(system, &udp::emit(&peer, source_port, &control));
                }
            }
        }
        let deadline = self.systems[system].next_deadline().unwrap();
        assert!(deadline > self.now, "a deadline that does not pass");
    }

    fn transmit(&mut self, from: usize, octets: &[u8]) {
        let faults = self.faults[from];
        if self.lost_next[from] > 0 {
            self.lost_next[from] -= 1;
            return;
        }
        let copies = if self.happens(faults.duplicated) { 2 } else { 1 };
        for _ in 0..copies {
            if self.happens(faults.lost) {
                continue;
            }
            let mut octets = octets.to_vec();
            if self.happens(faults.damaged) {
                let bit = self.random.below(octets.len() as u64 * 8) as usize;
                octets[bit / 8] ^= 1 << (bit % 8);
            }
            let (least, most) = faults.delay_ms;
            let delay_ns = least * MS + self.random.below((most - least) * MS + 1);
            self.sent += 1;
            self.on_the_way.insert((self.now.after_ns(delay_ns), self.sent), (1 - from, octets));
        }
    }

    fn deliver(&mut self, to: usize, octets: &[u8]) {
        let Ok((_, event)) = self.systems[to].receive_packet(1, octets, self.now) else { return };
        let control = ControlPacket::parse(&octets[48..]).unwrap().control;
        let rx_us = self.configs[to].required_min_rx_us();
        let detection_ns =
            u64::from(control.detect_mult.get()) * 1_000 * u64::from(control.desired_min_tx_us.max(rx_us));
        let observed = &mut self.observed[to];
        observed.heard = Some((self.now, detection_ns));
        observed.polls_taken += u64::from(control.is_poll);
        observed.events.extend(event.map(|event| (self.now, event)));
    }

    /// No system is Up that has not taken a packet for its detection time.
    fn check_detection(&self, system: usize) {
        if self.is_constant && self.state(system) == State::Up {
            let (heard, detection_ns) = self.observed[system].heard.expect("Up without a packet");
            assert!(self.now < heard.after_ns(detection_ns), "{system} is Up at {:?}, heard at {heard:?}", self.now);
        }
    }

    /// No packet comes faster than the slower side's interval less a quarter, except those out of turn: Finals, no
    /// more than there were Polls, and packets of another content; between two of these there are 10 ms.
    fn check_rate(&mut self, system: usize, control: &Control) {
        let plain = Control { is_poll: false, is_final: false, ..*control };
        let rx_us = self.configs[1 - system].required_min_rx_us();
        let peer_rx_us = if self.observed[system].heard.is_some() { rx_us } else { 1 };
        let interval_ns = 1_000 * u64::from(control.desired_min_tx_us.max(peer_rx_us));
        let (now, is_constant) = (self.now, self.is_constant);
        let observed = &mut self.observed[system];
        let is_in_turn = !control.is_final
            && observed.last_ordinary.is_none_or(|last| now >= last.after_ns(interval_ns - interval_ns / 4));
        if control.is_final {
            observed.finals_sent += 1;
            assert!(observed.finals_sent <= observed.polls_taken, "a Final without a Poll");
        }
        assert!(!(control.is_final && control.is_poll));
        if is_constant && !is_in_turn {
            let gap = observed.last_out_of_turn.is_none_or(|last| now >= last.after_ns(10 * MS));
            assert!(gap, "two packets out of turn within 10 ms, at {now:?}");
            assert!(control.is_final || observed.last != Some(plain), "too early a packet at {now:?}: {control:?}");
        }
        if !is_in_turn {
            observed.last_out_of_turn = Some(now);
        }
        if !control.is_final {
            observed.last_ordinary = Some(now);
        }
        observed.last = Some(plain);
    }
}

fn any_config(random: &mut Stream) -> Config {
    let mut us = || 10_000 * (1 + random.below(20) as u32);
    let (tx_us, rx_us) = (us(), us());
    Config::new(tx_us, rx_us, 1 + random.below(5) as u8).unwrap()
}

fn any_faults(random: &mut Stream) -> Faults {
    let delay_ms = random.below(50);
    Faults {
        lost: random.below(10) * random.below(100),
        duplicated: random.below(2) * random.below(500),
        damaged: random.below(2) * random.below(300),
        delay_ms: (delay_ms, delay_ms + random.below(2) * random.below(300)),
    }
}

/// Longest delay of [`any_faults`], in milliseconds.
const LONGEST_DELAY_MS: u64 = 350;

fn seeds() -> std::ops::Range<u64> {
    0..srdma_testkit::seeds::count(300)
}

/// While a link is bad: a system is Up only if it has taken a packet within its detection time, and the rates hold.
/// After its last fault: both are Up within the time of a slow packet and four delays, and stay so.
#[test]
fn both_are_up_soon_after_the_last_fault_and_never_without_packets() {
    let mut ups = 0;
    for seed in seeds() {
        let mut random = Stream::new(seed, "schedule");
        let mut net = Net::new(seed, [any_config(&mut random), any_config(&mut random)]);
        for _ in 0..1 + random.below(6) {
            net.faults = [any_faults(&mut random), any_faults(&mut random)];
            let end = net.now.after_ns(random.below(5_000) * MS);
            net.run(end, |_| ());
        }
        net.faults = [CLEAN; 2];
        let healed = net.now;
        // Packets from before may arrive as late as this; the slowest periodic packet, and its three answers with 10 ms
        // between those of one system.
        let settled = healed.after_ns((LONGEST_DELAY_MS + 1_000 + 4 * 2 + 3 * 10) * MS);
        net.run(settled, |_| ());
        assert!(net.are_up(), "seed {seed}: {:?}", [net.state(0), net.state(1)]);
        net.observed.iter_mut().for_each(|observed| ups += std::mem::take(&mut observed.events).len());
        net.run(settled.after_ns(5_000 * MS), |net| assert!(net.are_up(), "seed {seed}"));
        assert!(net.observed.iter().all(|observed| observed.events.is_empty()), "seed {seed}");
    }
    assert!(ups as u64 > 3 * seeds().end, "{ups} events: the links were too good");
}

/// One direction of a link is cut: neither system is Up after the far side's detection time, and that of the near
/// side, which does not see the fault itself, and none comes Up before the link is whole again.
#[test]
fn neither_is_up_when_one_direction_is_cut() {
    for seed in seeds() {
        let mut random = Stream::new(seed, "cut");
        let configs = [any_config(&mut random), any_config(&mut random)];
        let mut net = Net::new(seed, configs);
        let cut = at_ms(100 + random.below(3_000));
        net.run(cut, |_| ());
        let from = random.below(2) as usize;
        net.faults[from] = CUT;
        // A session that was Up for less than a packet's time detects by the slow interval of the handshake.
        let detection_ms = |config: &Config| u64::from(config.detect_mult().get()) * 1_000;
        let down = net.now.after_ns((configs.iter().map(detection_ms).sum::<u64>() + 2 * 2) * MS);
        net.run(down, |_| ());
        let is_up = |net: &Net| (0..2).any(|system| net.state(system) == State::Up);
        assert!(!is_up(&net), "seed {seed}");
        net.run(down.after_ns(10_000 * MS), |net| assert!(!is_up(net), "seed {seed}"));
        net.faults = [CLEAN; 2];
        net.run(net.now.after_ns(1_050 * MS), |_| ());
        assert!(net.are_up(), "seed {seed}");
    }
}

/// The far side of a cut link tells the near one at once: both are down within the far side's detection time.
#[test]
fn a_cut_is_told_to_the_other_side() {
    for seed in seeds() {
        let mut net = Net::new(seed, [Config::default(); 2]);
        net.run(at_ms(3_000 + seed), |_| ());
        assert!(net.are_up());
        net.faults[0] = CUT;
        net.run(net.now.after_ns((2 + 150 + 10 + 2) * MS), |_| ());
        assert_eq!([net.state(0), net.state(1)].map(|state| state == State::Up), [false; 2], "seed {seed}");
    }
}

/// On a link of constant delay no change of intervals takes a session down: Poll Sequences are for that.
#[test]
fn changed_intervals_take_no_session_down() {
    change_intervals(false);
}

/// Nor if the packets that tell of the change, and the next one of the peer, are lost.
#[test]
fn changed_intervals_take_no_session_down_when_they_must_be_repeated() {
    change_intervals(true);
}

fn change_intervals(is_lossy: bool) {
    let least_mult = if is_lossy { 4 } else { 1 };
    let any_config = |random: &mut Stream| {
        let config = any_config(random);
        let detect_mult = config.detect_mult().get().max(least_mult);
        Config::new(config.desired_min_tx_us(), config.required_min_rx_us(), detect_mult).unwrap()
    };
    for seed in seeds() {
        let mut random = Stream::new(seed, "change");
        let mut net = Net::new(seed, [any_config(&mut random), any_config(&mut random)]);
        net.is_constant = false;
        let delay_ms = 1 + random.below(120);
        net.faults = [Faults { delay_ms: (delay_ms, delay_ms), ..CLEAN }; 2];
        net.run(at_ms(1_000 + 10 * delay_ms), |_| ());
        assert!(net.are_up(), "seed {seed}");
        net.observed.iter_mut().for_each(|observed| observed.events.clear());
        for _ in 0..20 {
            let (system, config) = (random.below(2) as usize, any_config(&mut random));
            let discriminator = net.systems[system].iter().next().unwrap().1.discriminator();
            assert!(net.systems[system].configure(discriminator, config));
            net.configs[system] = config;
            let wait_ms = if is_lossy {
                net.lost_next = [random.below(2), random.below(2)];
                2_000
            } else {
                random.below(600)
            };
            let end = net.now.after_ns(wait_ms * MS);
            net.run(end, |net| assert!(net.are_up(), "seed {seed}"));
        }
        net.run(net.now.after_ns(5_000 * MS), |net| assert!(net.are_up(), "seed {seed}"));
        assert!(net.observed.iter().all(|observed| observed.events.is_empty()), "seed {seed}");
        for system in 0..2 {
            let session = net.systems[system].iter().next().unwrap().1;
            let [ours, theirs] = [net.configs[system], net.configs[1 - system]];
            let interval_ns = 1_000 * u64::from(ours.desired_min_tx_us().max(theirs.required_min_rx_us()));
            assert_eq!(session.interval_ns(), Some(interval_ns), "seed {seed}: the last change is in use");
            let detection_ns = 1_000
                * u64::from(theirs.detect_mult().get())
                * u64::from(theirs.desired_min_tx_us().max(ours.required_min_rx_us()));
            assert_eq!(session.detection_time_ns(), Some(detection_ns), "seed {seed}");
        }
    }
}
