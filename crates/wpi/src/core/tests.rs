//! A driver in virtual conditions: each request, in each state.

use super::*;
use proptest::prelude::*;

fn driver(memory_octets: u64) -> Driver {
    Driver::new(Limits { memory_octets, own_hosts: BTreeSet::from(["self".to_owned()]) })
}

fn stage(claim: &str, buffer: &str, octets: u64) -> Stage {
    Stage { claim: claim.to_owned(), buffer: buffer.to_owned(), octets, shard_index: 0, total_shards: 0 }
}

fn id(buffer: &str) -> BufferId {
    BufferId::parse(buffer).expect("a name")
}

/// A driver with buffer `m` of 100 octets for claim `c`.
fn with_buffer() -> Driver {
    let mut driver = driver(1000);
    assert_eq!(driver.stage(&stage("c", "m", 100), None), Ok(Staged::New { buffer: id("m"), octets: 100 }));
    driver.staged(&id("m"));
    driver
}

fn propagation(targets: &[&str]) -> Propagation {
    let targets = targets.iter().map(|target| (*target).to_owned()).collect();
    Propagation { buffer: "m".to_owned(), targets, mode: 0, assignments: Vec::new() }
}

/// D210: an operator repeats its requests.
#[test]
fn the_same_request_again_has_no_effect() {
    let mut driver = with_buffer();
    for _ in 0..3 {
        assert_eq!(driver.stage(&stage("c", "m", 100), None), Ok(Staged::Existing));
    }
    assert_eq!(driver.unstage("c"), Ok(Unstaged::Last(id("m"))));
    assert_eq!(driver.unstage("c"), Ok(Unstaged::Kept));
    assert_eq!(driver.buffer("m", 0), Err(Refusal::UnknownBuffer(id("m"))));
}

#[test]
fn a_buffer_is_there_until_its_last_claim_is_unstaged() {
    let mut driver = with_buffer();
    assert_eq!(driver.stage(&stage("d", "m", 0), None), Ok(Staged::Existing), "without a length: its own");
    assert_eq!(driver.unstage("c"), Ok(Unstaged::Kept));
    assert_eq!(driver.buffer("m", 100), Ok(id("m")));
    assert_eq!(driver.buffer_of("c"), Err(Refusal::UnknownClaim(ClaimId::parse("c").expect("a name"))));
    assert_eq!(driver.buffer_of("d"), Ok(id("m")));
    assert_eq!(driver.unstage("d"), Ok(Unstaged::Last(id("m"))));
}

#[test]
fn what_contradicts_an_earlier_request_is_refused() {
    let mut driver = with_buffer();
    let other_length = Refusal::OtherLength { buffer: id("m"), has: 100, wanted: 99 };
    assert_eq!(driver.stage(&stage("d", "m", 99), None), Err(other_length.clone()));
    assert_eq!(driver.buffer("m", 99), Err(other_length));
    let found = driver.stage(&stage("c", "n", 5), None).expect_err("refused");
    assert_eq!(found.to_string(), "claim c has buffer m already, not n");
    assert_eq!(driver.announce("m", 7).expect_err("refused").kind(), Kind::FailedPrecondition);
    assert_eq!(driver.announce("m", 100), Ok(()));
}

#[test]
fn a_length_is_stated_announced_or_that_of_the_file() {
    let mut driver = driver(1000);
    assert_eq!(driver.stage(&stage("a", "a", 0), None), Err(Refusal::NoLength(id("a"))));
    assert_eq!(driver.announce("a", 30), Ok(()));
    assert_eq!(driver.stage(&stage("a", "a", 0), None), Ok(Staged::New { buffer: id("a"), octets: 30 }));
    assert_eq!(driver.stage(&stage("b", "b", 0), Some(40)), Ok(Staged::New { buffer: id("b"), octets: 40 }));
    assert_eq!(driver.stage(&stage("c", "c", 0), Some(0)), Err(Refusal::NoLength(id("c"))));
    assert_eq!(driver.stage(&stage("c", "c", 50), Some(40)), Ok(Staged::New { buffer: id("c"), octets: 50 }));
    let longer = Refusal::OtherLength { buffer: id("d"), has: 40, wanted: 39 };
    assert_eq!(driver.stage(&stage("d", "d", 39), Some(40)), Err(longer));
    assert_eq!(driver.announce("e", 8), Ok(()));
    assert_eq!(driver.stage(&stage("e", "e", 9), None).expect_err("refused").kind(), Kind::FailedPrecondition);
}

#[test]
fn memory_has_a_limit_and_returns() {
    let mut driver = driver(100);
    driver.stage(&stage("a", "a", 60), None).expect("room");
    let found = driver.stage(&stage("b", "b", 41), None).expect_err("refused");
    assert_eq!(found, Refusal::NoMemory { buffer: id("b"), wanted: 41, left: 40 });
    assert_eq!(driver.stage(&stage("b", "b", u64::MAX), None).expect_err("refused").kind(), Kind::ResourceExhausted);
    driver.not_staged(&id("a"));
    assert_eq!(driver.buffer_of("a").expect_err("gone").kind(), Kind::NotFound);
    assert_eq!(driver.stage(&stage("b", "b", 100), None), Ok(Staged::New { buffer: id("b"), octets: 100 }));
}

#[test]
fn a_shard_is_a_buffer_of_its_own() {
    let mut driver = driver(1000);
    let shard = |index, total| Stage { shard_index: index, total_shards: total, ..stage("c", "m", 10) };
    assert_eq!(driver.stage(&shard(8, 8), None), Err(Refusal::ShardIndex { index: 8, total: 8 }));
    assert_eq!(driver.stage(&shard(1, 0), None), Err(Refusal::ShardIndex { index: 1, total: 0 }));
    assert_eq!(driver.stage(&shard(0, -1), None), Err(Refusal::ShardIndex { index: 0, total: -1 }));
    assert_eq!(driver.stage(&shard(7, 8), None), Ok(Staged::New { buffer: id("m__shard_7"), octets: 10 }));
    let whole = Stage { claim: "w".to_owned(), ..shard(-1, 8) };
    assert_eq!(driver.stage(&whole, None), Ok(Staged::New { buffer: id("m"), octets: 10 }));
}

#[test]
fn a_buffer_that_is_being_staged_is_not_there_yet() {
    let mut driver = driver(1000);
    driver.stage(&stage("c", "m", 100), None).expect("room");
    let being_staged = Refusal::BeingStaged(id("m"));
    assert_eq!(driver.stage(&stage("d", "m", 100), None), Err(being_staged.clone()));
    assert_eq!(driver.unstage("c"), Err(being_staged.clone()));
    assert_eq!(driver.propagate(&propagation(&["a"])), Err(being_staged.clone()));
    assert_eq!(driver.receive(&id("m"), None, 0, 100, true), Err(being_staged));
}

#[test]
fn a_buffer_has_one_use_at_a_time() {
    let mut driver = with_buffer();
    assert_eq!(
        driver.propagate(&Propagation { buffer: "x".to_owned(), ..propagation(&["a"]) }).expect_err("none").kind(),
        Kind::NotFound
    );
    driver.propagate(&propagation(&["self"])).expect_err("no use begins");
    let (buffer, batches) = driver.propagate(&propagation(&["a", "b"])).expect("staged");
    assert_eq!((buffer, batches.len(), batches[0][0].length), (id("m"), 1, 100));
    let busy = Refusal::Busy(id("m"));
    assert_eq!(driver.propagate(&propagation(&["a"])), Err(busy.clone()));
    assert_eq!(driver.receive(&id("m"), None, 0, 100, true), Err(busy.clone()));
    assert_eq!(driver.unstage("c"), Err(busy));
    assert_eq!(driver.stage(&stage("d", "m", 100), None), Ok(Staged::Existing));
    assert_eq!(driver.unstage("d"), Ok(Unstaged::Kept));
    driver.release(&id("m"));
    assert_eq!(driver.receive(&id("m"), None, 0, 100, true), Ok(Place { buffer: id("m"), offset: 0 }));
    driver.release(&id("m"));
    assert_eq!(driver.unstage("c"), Ok(Unstaged::Last(id("m"))));
    driver.release(&id("m"));
}

#[test]
fn a_part_goes_to_the_whole_buffer_or_to_that_of_its_shard() {
    let mut driver = with_buffer();
    let shard = Stage { shard_index: 2, total_shards: 4, ..stage("s", "n", 25) };
    driver.stage(&shard, None).expect("room");
    driver.staged(&id("n__shard_2"));
    let mut place = |buffer: &str, shard, offset, length, is_whole| {
        let place = driver.receive(&id(buffer), shard, offset, length, is_whole);
        place.inspect(|place| driver.release(&place.buffer)).map(|place| (place.buffer.to_string(), place.offset))
    };
    assert_eq!(place("m", Some(1), 25, 25, false), Ok(("m".to_owned(), 25)));
    assert_eq!(place("n", Some(2), 50, 25, false), Ok(("n__shard_2".to_owned(), 0)));
    assert_eq!(place("n", Some(3), 75, 25, false), Err(Refusal::UnknownBuffer(id("n"))));
    assert_eq!(place("n", None, 0, 25, false), Err(Refusal::UnknownBuffer(id("n"))));
    let other = Refusal::OtherLength { buffer: id("n__shard_2"), has: 25, wanted: 26 };
    assert_eq!(place("n", Some(2), 50, 26, false), Err(other));
    assert_eq!(place("m", None, 0, 99, true).expect_err("refused").kind(), Kind::FailedPrecondition);
    for (offset, length) in [(76, 25), (u64::MAX, 2), (2, u64::MAX)] {
        assert_eq!(place("m", None, offset, length, false).expect_err("refused").kind(), Kind::OutOfRange);
    }
}

#[test]
fn tables_have_limits() {
    let mut driver = driver(u64::MAX);
    for number in 0..MAX_BUFFERS {
        driver.stage(&stage(&format!("c{number}"), &format!("b{number}"), 1), None).expect("room");
        driver.announce(&format!("b{number}"), 1).expect("room");
    }
    assert_eq!(driver.stage(&stage("c", "b", 1), None), Err(Refusal::TooMany("1024 buffers")));
    assert_eq!(driver.announce("b", 1), Err(Refusal::TooMany("1024 announced buffers")));
    driver.staged(&id("b0"));
    for number in 0..MAX_CLAIMS - MAX_BUFFERS {
        assert_eq!(driver.stage(&stage(&format!("d{number}"), "b0", 1), None), Ok(Staged::Existing));
    }
    assert_eq!(driver.stage(&stage("d", "b0", 1), None), Err(Refusal::TooMany("65536 claims")));
}

/// A request of one of few buffers and claims.
fn any_request() -> impl Strategy<Value = (u8, u8, u8, u64)> {
    (0..7_u8, 0..3_u8, 0..3_u8, 0..5_u64)
}

proptest! {
    /// Memory in use is that of the buffers, and each buffer has the claims that name it.
    #[test]
    fn any_requests_keep_the_books(requests in proptest::collection::vec(any_request(), 0..60)) {
        let mut driver = driver(8);
        for (kind, claim, buffer, octets) in requests {
            let (claim, name) = (format!("c{claim}"), format!("b{buffer}"));
            let buffer = id(&name);
            match kind {
                0 | 1 => drop(driver.stage(&stage(&claim, &name, octets), None)),
                2 => drop(driver.unstage(&claim)),
                3 => driver.staged(&buffer),
                4 => drop(driver.receive(&buffer, None, 0, octets, octets % 2 == 0)),
                5 => driver.release(&buffer),
                _ => {
                    let is_new = driver.buffers.get(&buffer).is_some_and(|entry| entry.used == Use::BeingStaged);
                    if is_new { driver.not_staged(&buffer) }
                }
            }
            let octets: u64 = driver.buffers.values().map(|entry| entry.octets).sum();
            prop_assert_eq!(octets, driver.octets);
            prop_assert!(octets <= 8);
            for (buffer, entry) in &driver.buffers {
                let claims = driver.claims.values().filter(|of| *of == buffer).count();
                prop_assert_eq!((claims, claims > 0), (entry.claims, true));
            }
            prop_assert!(driver.claims.values().all(|buffer| driver.buffers.contains_key(buffer)));
        }
    }
}
