//! Rules of one session, one by one (RFC 5880 sections 6.8.3 to 6.8.7, 6.8.16).

use crate::support::{at_ms, control, ours, theirs};
use srdma_bfd::{Config, Control, ControlPacket, Diagnostic, Event, Refusal, Session, State};
use srdma_random::Stream;
use srdma_wire::Instant;

/// A session, and the present.
struct Driven {
    session: Session,
    now: Instant,
}

impl std::ops::Deref for Driven {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl std::ops::DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

fn session(config: Config) -> Driven {
    Driven { session: Session::new(config, ours(), Stream::new(1, "test"), Instant::ZERO), now: Instant::ZERO }
}

fn receive(driven: &mut Driven, control: Control, now: Instant) -> Result<Option<Event>, Refusal> {
    driven.now = now;
    driven.session.receive(&ControlPacket { control, authentication: None }, now)
}

/// Everything that is sent from the present until `end`.
fn sent_until(driven: &mut Driven, end: Instant) -> Vec<(Instant, Control)> {
    let mut sent = Vec::new();
    while let Some(at) = driven.next_deadline().map(|at| at.max(driven.now)).filter(|at| *at <= end) {
        driven.now = at;
        assert_eq!(driven.session.tick(at), None, "at {at:?}");
        while let Some(control) = driven.session.poll(at) {
            sent.push((at, control));
        }
        assert!(driven.next_deadline().is_none_or(|next| next > at), "a deadline that does not pass");
    }
    driven.now = end;
    sent
}

/// A session that became Up at 0 s and has no Poll outstanding at 100 ms; the last packet came then.
fn up(config: Config) -> Driven {
    let mut session = session(config);
    assert_eq!(receive(&mut session, control(State::Init), Instant::ZERO), Ok(Some(Event::Up)));
    sent_until(&mut session, at_ms(20));
    assert_eq!(receive(&mut session, Control { is_final: true, ..control(State::Up) }, at_ms(50)), Ok(None));
    sent_until(&mut session, at_ms(100));
    assert_eq!(receive(&mut session, control(State::Up), at_ms(100)), Ok(None));
    session
}

#[test]
fn the_first_packet_is_sent_at_once_and_the_next_within_a_second() {
    let mut session = session(Config::default());
    let first = session.poll(Instant::ZERO).unwrap();
    let expected = Control { my_discriminator: ours(), your_discriminator: None, ..control(State::Down) };
    assert_eq!(first, expected);
    assert_eq!(session.poll(Instant::ZERO), None);
    let sent = sent_until(&mut session, at_ms(60_000));
    assert!((60..=80).contains(&sent.len()), "{} packets in a minute", sent.len());
    let gaps = sent.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis());
    assert!(gaps.into_iter().all(|ms| (750..=1_000).contains(&ms)));
}

#[test]
fn the_handshake_has_three_states() {
    let mut session = session(Config::default());
    sent_until(&mut session, at_ms(10));
    let down = Control { your_discriminator: None, ..control(State::Down) };
    assert_eq!(receive(&mut session, down, at_ms(100)), Ok(None));
    let sent = sent_until(&mut session, at_ms(110));
    assert_eq!(sent.len(), 1, "a change of state is told at once");
    assert_eq!((sent[0].0, sent[0].1.state, sent[0].1.your_discriminator), (at_ms(100), State::Init, Some(theirs())));
    assert_eq!(receive(&mut session, control(State::Up), at_ms(200)), Ok(Some(Event::Up)));
    let sent = sent_until(&mut session, at_ms(200));
    let up =
        Control { is_poll: true, my_discriminator: ours(), your_discriminator: Some(theirs()), ..control(State::Up) };
    assert_eq!(sent, [(at_ms(200), up)], "another transmission interval is polled for");
    assert_eq!(session.diagnostic(), Diagnostic::NONE);
}

#[test]
fn a_peer_that_is_not_received_for_the_detection_time_is_forgotten() {
    let mut session = up(Config::new(50_000, 70_000, 3).unwrap());
    assert_eq!(session.detection_time_ns(), Some(210_000_000));
    let before_ns = at_ms(310).as_ns() - 1;
    sent_until(&mut session, Instant::from_ns(before_ns));
    assert_eq!(session.state(), State::Up);
    assert_eq!(session.next_deadline(), Some(at_ms(310)));
    let diagnostic = Diagnostic::DETECTION_TIME_EXPIRED;
    assert_eq!(session.tick(at_ms(310)), Some(Event::Down { diagnostic, is_administrative: false }));
    assert_eq!(session.tick(at_ms(310)), None);
    let packet = session.poll(at_ms(310)).unwrap();
    assert_eq!((packet.state, packet.diagnostic, packet.your_discriminator), (State::Down, diagnostic, None));
    assert_eq!(packet.desired_min_tx_us, 1_000_000);
    assert_eq!((session.remote_discriminator(), session.remote_state()), (None, State::Down));
}

/// Packets that have waited for a driver count when it receives them before it looks at the time (D90).
#[test]
fn a_late_driver_does_not_take_a_session_down() {
    let mut session = up(Config::default());
    let late = at_ms(1_000);
    assert!(session.next_deadline().unwrap() < late);
    assert_eq!(receive(&mut session, control(State::Up), late), Ok(None));
    assert_eq!((session.tick(late), session.state()), (None, State::Up));
    assert!(session.tick(at_ms(1_150)).is_some());
}

#[test]
fn the_peers_own_interval_and_multiplier_make_the_detection_time() {
    let mut session = up(Config::default());
    let slow = Control { desired_min_tx_us: 300_000, detect_mult: 5.try_into().unwrap(), ..control(State::Up) };
    assert_eq!(receive(&mut session, slow, at_ms(120)), Ok(None));
    assert_eq!(session.detection_time_ns(), Some(1_500_000_000));
    sent_until(&mut session, at_ms(1_619));
    assert!(session.tick(at_ms(1_620)).is_some());
}

#[test]
fn a_session_in_init_goes_down_without_an_event() {
    let mut session = session(Config::default());
    receive(&mut session, Control { your_discriminator: None, ..control(State::Down) }, Instant::ZERO).unwrap();
    assert_eq!(session.state(), State::Init);
    assert_eq!(session.tick(at_ms(3_000)), None);
    assert_eq!((session.state(), session.diagnostic()), (State::Down, Diagnostic::DETECTION_TIME_EXPIRED));
}

/// D90.
#[test]
fn the_peers_down_and_admin_down_are_told_apart() {
    for (state, is_administrative) in [(State::Down, false), (State::AdminDown, true)] {
        let mut session = up(Config::default());
        let event = Event::Down { diagnostic: Diagnostic::NEIGHBOR_SIGNALED_DOWN, is_administrative };
        assert_eq!(receive(&mut session, control(state), at_ms(120)), Ok(Some(event)));
    }
}

#[test]
fn a_poll_is_answered_by_one_final() {
    let mut session = up(Config::default());
    sent_until(&mut session, at_ms(110));
    assert_eq!(receive(&mut session, Control { is_poll: true, ..control(State::Up) }, at_ms(111)), Ok(None));
    let sent = sent_until(&mut session, at_ms(111));
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].1.is_final, sent[0].1.is_poll, sent[0].1.state), (true, false, State::Up));
}

/// A hundred Polls in 10 ms: two Finals, and periodic packets as ever.
#[test]
fn finals_are_limited() {
    let mut session = up(Config::default());
    let mut sent = Vec::new();
    for step in 0..100 {
        let now = at_ms(120).after_ns(step * 100_000);
        receive(&mut session, Control { is_poll: true, ..control(State::Up) }, now).unwrap();
        sent.extend(sent_until(&mut session, now));
    }
    sent.extend(sent_until(&mut session, at_ms(200)));
    assert_eq!(sent.iter().filter(|(_, packet)| packet.is_final).count(), 2);
    let ordinary: Vec<_> = sent.iter().filter(|(_, packet)| !packet.is_final).collect();
    assert!((1..=3).contains(&ordinary.len()), "{} periodic packets in 80 ms", ordinary.len());
}

#[test]
fn a_poll_has_no_final_bit_even_when_the_peer_polls_too() {
    let mut session = session(Config::default());
    let mut packets = Vec::new();
    for step in 0..200 {
        let state = if step < 3 { State::Init } else { State::Up };
        let now = at_ms(step * 13);
        receive(&mut session, Control { is_poll: true, is_final: step % 7 == 6, ..control(state) }, now).unwrap();
        packets.extend(sent_until(&mut session, now).into_iter().map(|(_, packet)| packet));
    }
    assert!(packets.iter().any(|packet| packet.is_poll) && packets.iter().any(|packet| packet.is_final));
    assert!(!packets.iter().any(|packet| packet.is_poll && packet.is_final));
}

#[test]
fn a_peer_that_wants_no_packets_gets_none_but_changes() {
    let mut session = up(Config::default());
    let silent = Control { required_min_rx_us: 0, ..control(State::Up) };
    assert_eq!(receive(&mut session, silent, at_ms(110)), Ok(None));
    for ms in (120..2_000).step_by(50) {
        receive(&mut session, silent, at_ms(ms)).unwrap();
        assert_eq!(sent_until(&mut session, at_ms(ms + 49)), []);
    }
    assert_eq!(session.interval_ns(), None);
    assert_eq!(receive(&mut session, Control { is_poll: true, ..silent }, at_ms(2_000)), Ok(None));
    assert!(session.poll(at_ms(2_000)).unwrap().is_final);
    assert!(session.tick(at_ms(2_150)).is_some(), "it is still detected");
    assert_eq!(session.poll(at_ms(2_150)).unwrap().state, State::Down);
}

#[test]
fn a_peer_in_demand_mode_gets_packets_of_poll_sequences_only() {
    let mut session = up(Config::default());
    let demand = Control { is_demand: true, ..control(State::Up) };
    receive(&mut session, demand, at_ms(110)).unwrap();
    for ms in (150..1_000).step_by(50) {
        receive(&mut session, demand, at_ms(ms)).unwrap();
        assert_eq!(sent_until(&mut session, at_ms(ms + 49)), []);
    }
    session.configure(Config::new(80_000, 50_000, 3).unwrap());
    receive(&mut session, demand, at_ms(1_000)).unwrap();
    let sent = sent_until(&mut session, at_ms(1_140));
    assert!((2..=4).contains(&sent.len()) && sent.iter().all(|(_, packet)| packet.is_poll), "{sent:?}");
    receive(&mut session, Control { is_final: true, ..demand }, at_ms(1_145)).unwrap();
    assert_eq!(sent_until(&mut session, at_ms(1_290)), []);
    assert_eq!(receive(&mut session, Control { is_demand: false, ..demand }, at_ms(1_290)), Ok(None));
    assert_eq!(sent_until(&mut session, at_ms(1_290)).len(), 1, "the next one is overdue");
}

#[test]
fn a_shorter_interval_of_the_peer_is_honoured_at_once() {
    let mut session = up(Config::default());
    let slow = Control { required_min_rx_us: 10_000_000, desired_min_tx_us: 10_000_000, ..control(State::Up) };
    receive(&mut session, slow, at_ms(110)).unwrap();
    assert_eq!(sent_until(&mut session, at_ms(7_000)), []);
    receive(&mut session, control(State::Up), at_ms(7_000)).unwrap();
    assert_eq!(sent_until(&mut session, at_ms(7_000)).len(), 1);
}

#[test]
fn a_disabled_session_says_so_and_becomes_no_other_until_it_is_enabled() {
    let mut session = up(Config::default());
    let diagnostic = Diagnostic::ADMINISTRATIVELY_DOWN;
    assert_eq!(session.disable(diagnostic), Some(Event::Down { diagnostic, is_administrative: true }));
    assert_eq!(session.disable(diagnostic), None);
    let packet = session.poll(at_ms(110)).unwrap();
    assert_eq!((packet.state, packet.diagnostic), (State::AdminDown, diagnostic));
    for state in [State::AdminDown, State::Down, State::Init, State::Up] {
        let polled = Control { is_poll: true, ..control(state) };
        assert_eq!(receive(&mut session, polled, at_ms(120)), Err(Refusal::AdministrativelyDown));
        assert_eq!(session.state(), State::AdminDown);
    }
    let sent = sent_until(&mut session, at_ms(5_000));
    assert!(sent.iter().all(|(_, packet)| packet.state == State::AdminDown));
    assert_eq!(sent.iter().filter(|(_, packet)| packet.is_final).count(), 1, "a Poll is answered in any state (D91)");
    session.enable();
    assert_eq!((session.state(), session.diagnostic()), (State::Down, Diagnostic::NONE));
    assert_eq!(receive(&mut session, control(State::Init), at_ms(5_000)), Ok(Some(Event::Up)));
}

#[test]
fn a_packet_for_another_session_is_refused() {
    let mut session = session(Config::default());
    let other = Control { your_discriminator: Some(theirs()), ..control(State::Init) };
    assert_eq!(receive(&mut session, other, at_ms(1)), Err(Refusal::UnknownDiscriminator));
    assert_eq!(session.state(), State::Down);
}
