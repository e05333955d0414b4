//! What a request to propagate asks for: parts, each of which a group brings to its targets.
//!
//! ```text
//!   BROADCAST  octets 0 … N to A, B, C              one part, three targets
//!   SCATTER    octets 0 … 4 to A, 4 … 8 to B and C  two parts: those that get the same octets share a group
//! ```

use super::Refusal;
use super::name::{BufferId, Target};
use std::collections::BTreeSet;

/// Targets of a propagation at most.
pub const MAX_TARGETS: usize = 1024;
/// Shard assignments of a propagation at most.
pub const MAX_ASSIGNMENTS: usize = 4096;

/// How octets are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each target gets all octets.
    Broadcast,
    /// Each target gets those that are assigned to it.
    Scatter,
}

impl Mode {
    /// The mode of this number (`PropagateMode`).
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn of(number: i32) -> Result<Self, Refusal> {
        match number {
            0 => Ok(Mode::Broadcast),
            1 => Ok(Mode::Scatter),
            other => Err(Refusal::Mode(other)),
        }
    }
}

/// Octets that are assigned to a target, as the request has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The target.
    pub target: String,
    /// The number of the shard, by which the target may have a buffer for it alone.
    pub shard_index: i32,
    /// First octet in the source's buffer.
    pub offset: u64,
    /// Number of octets.
    pub length: u64,
    /// The GPU for which they are.
    pub gpu: i32,
}

/// A request to propagate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Propagation {
    /// The buffer.
    pub buffer: String,
    /// The nodes that are to have it.
    pub targets: Vec<String>,
    /// `PropagateMode`.
    pub mode: i32,
    /// Octets of each target.
    pub assignments: Vec<Assignment>,
}

/// Octets of a buffer, and the targets that get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The shard, if it is one.
    pub shard: Option<u32>,
    /// First octet in the source's buffer.
    pub offset: u64,
    /// Number of octets.
    pub length: u64,
    /// All different.
    pub targets: Vec<Target>,
}

/// The parts of a request; `length` is that of the buffer, `is_own` tells which host names are this node.
pub(super) fn parts(
    request: &Propagation,
    buffer: &BufferId,
    length: u64,
    is_own: impl Fn(&str) -> bool,
) -> Result<Vec<Part>, Refusal> {
    let mode = Mode::of(request.mode)?;
    if request.targets.is_empty() {
        return Err(Refusal::NoTarget);
    }
    if request.targets.len() > MAX_TARGETS || request.assignments.len() > MAX_ASSIGNMENTS {
        return Err(Refusal::TooMany("1024 targets or 4096 shard assignments of a propagation"));
    }
    let mut targets = Vec::with_capacity(request.targets.len());
    let mut hosts = BTreeSet::new();
    for text in &request.targets {
        let target = Target::parse(text)?;
        if is_own(target.host()) {
            return Err(Refusal::OwnNode(target));
        }
        if !hosts.insert((target.host().to_owned(), target.port())) {
            return Err(Refusal::TargetTwice(target));
        }
        targets.push(target);
    }
    match mode {
        Mode::Broadcast if request.assignments.is_empty() => Ok(vec![Part { shard: None, offset: 0, length, targets }]),
        Mode::Broadcast => Err(Refusal::AssignmentsOfBroadcast),
        Mode::Scatter => scattered(&request.assignments, buffer, length, &targets),
    }
}

/// Parts in batches, each of which is sent at once: no target has two parts of a batch, and their octets together are
/// no more than `length`, that of the buffer.
pub(super) fn batches(parts: Vec<Part>, length: u64) -> Vec<Vec<Part>> {
    let mut batches: Vec<Vec<Part>> = Vec::new();
    let (mut hosts, mut octets) = (BTreeSet::new(), 0_u64);
    for part in parts {
        let own: Vec<String> = part.targets.iter().map(|target| target.host().to_owned()).collect();
        let fits = octets.saturating_add(part.length) <= length && !own.iter().any(|host| hosts.contains(host));
        if !fits {
            (hosts, octets) = (BTreeSet::new(), 0);
        }
        octets = octets.saturating_add(part.length);
        hosts.extend(own);
        match batches.last_mut().filter(|_| fits) {
            Some(batch) => batch.push(part),
            None => batches.push(vec![part]),
        }
    }
    batches
}

fn scattered(
    assignments: &[Assignment],
    buffer: &BufferId,
    has: u64,
    targets: &[Target],
) -> Result<Vec<Part>, Refusal> {
    let mut parts: Vec<Part> = Vec::new();
    for Assignment { target, shard_index, offset, length, gpu } in assignments {
        let (offset, length) = (*offset, *length);
        let target = Target::parse(target)?;
        if !targets.contains(&target) {
            return Err(Refusal::AssignedToOther(target));
        }
        if *gpu != 0 {
            return Err(Refusal::Gpu((*gpu).into()));
        }
        if length == 0 {
            return Err(Refusal::EmptyShard(target));
        }
        if offset.checked_add(length).is_none_or(|end| end > has) {
            return Err(Refusal::Range { buffer: buffer.clone(), offset, length, has });
        }
        // A negative number is that of no shard.
        let shard = u32::try_from(*shard_index).ok();
        let same = parts.iter_mut().find(|part| (part.shard, part.offset, part.length) == (shard, offset, length));
        match same {
            Some(part) if part.targets.contains(&target) => return Err(Refusal::AssignedTwice(target)),
            Some(part) => part.targets.push(target),
            None => parts.push(Part { shard, offset, length, targets: vec![target] }),
        }
    }
    match targets.iter().find(|target| !parts.iter().any(|part| part.targets.contains(target))) {
        Some(target) => Err(Refusal::Unassigned(target.clone())),
        None => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn buffer() -> BufferId {
        BufferId::parse("m").expect("a name")
    }

    fn assignment(target: &str, offset: u64, length: u64) -> Assignment {
        Assignment { target: target.to_owned(), shard_index: 0, offset, length, gpu: 0 }
    }

    fn request(mode: i32, targets: &[&str], assignments: Vec<Assignment>) -> Propagation {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        Propagation { buffer: "m".to_owned(), targets, mode, assignments }
    }

    fn found(request: &Propagation) -> Result<Vec<(u64, u64, usize)>, Refusal> {
        let parts = parts(request, &buffer(), 100, |host| host == "self")?;
        Ok(parts.into_iter().map(|part| (part.offset, part.length, part.targets.len())).collect())
    }

    #[test]
    fn a_broadcast_is_one_part() {
        assert_eq!(found(&request(0, &["a", "b", "10.0.0.1:7"], vec![])), Ok(vec![(0, 100, 3)]));
    }

    #[test]
    fn targets_of_the_same_octets_share_a_part() {
        let assignments = vec![assignment("a", 0, 40), assignment("b", 40, 60), assignment("c", 0, 40)];
        assert_eq!(found(&request(1, &["a", "b", "c"], assignments)), Ok(vec![(0, 40, 2), (40, 60, 1)]));
        let both = vec![assignment("a", 0, 40), assignment("a", 40, 60)];
        assert_eq!(found(&request(1, &["a"], both)), Ok(vec![(0, 40, 1), (40, 60, 1)]), "two shards for one target");
    }

    #[test]
    fn a_batch_has_each_target_once_and_the_octets_of_the_buffer_at_most() {
        let batched = |shards: &[(&str, u64, u64)]| -> Vec<Vec<u64>> {
            let targets: BTreeSet<&str> = shards.iter().map(|shard| shard.0).collect();
            let assignments = shards.iter().map(|(target, offset, length)| assignment(target, *offset, *length));
            let request = request(1, &targets.into_iter().collect::<Vec<_>>(), assignments.collect());
            let parts = parts(&request, &buffer(), 100, |_| false).expect("good");
            batches(parts, 100).into_iter().map(|batch| batch.into_iter().map(|part| part.offset).collect()).collect()
        };
        assert_eq!(batched(&[("a", 0, 50), ("b", 50, 50)]), [[0, 50]]);
        assert_eq!(batched(&[("a", 0, 50), ("b", 25, 51)]), [[0], [25]], "more than the buffer");
        assert_eq!(batched(&[("a", 0, 10), ("a", 10, 10), ("b", 20, 10)]), [vec![0], vec![10, 20]], "one at a time");
        assert_eq!(batched(&[("a", 0, 100)]), [[0]]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |request: Propagation| found(&request).expect_err("refused");
        let target = |text: &str| Target::parse(text).expect("a target");
        assert_eq!(refused(request(0, &[], vec![])), Refusal::NoTarget);
        assert_eq!(refused(request(2, &["a"], vec![])), Refusal::Mode(2));
        assert_eq!(refused(request(-1, &["a"], vec![])), Refusal::Mode(-1));
        assert_eq!(refused(request(0, &["a", "b", "A"], vec![])), Refusal::TargetTwice(target("A")));
        assert_eq!(refused(request(0, &["self"], vec![])), Refusal::OwnNode(target("self")));
        assert_eq!(refused(request(0, &["a"], vec![assignment("a", 0, 1)])), Refusal::AssignmentsOfBroadcast);
        assert_eq!(refused(request(1, &["a"], vec![])), Refusal::Unassigned(target("a")));
        let twice = vec![assignment("a", 0, 1), assignment("a", 0, 1)];
        assert_eq!(refused(request(1, &["a"], twice)), Refusal::AssignedTwice(target("a")));
        assert_eq!(refused(request(1, &["a"], vec![assignment("b", 0, 1)])), Refusal::AssignedToOther(target("b")));
        assert_eq!(refused(request(1, &["a"], vec![assignment("a", 0, 0)])), Refusal::EmptyShard(target("a")));
        for (offset, length) in [(100, 1), (1, 100), (u64::MAX, 1), (1, u64::MAX)] {
            let found = refused(request(1, &["a"], vec![assignment("a", offset, length)]));
            assert_eq!(found.kind(), Kind::OutOfRange, "{found}");
        }
        let of_gpu = Assignment { gpu: 3, ..assignment("a", 0, 1) };
        let found = refused(request(1, &["a"], vec![of_gpu]));
        assert_eq!(found.to_string(), "GPU 3: this driver has memory of the host alone, which is GPU 0 of requests");
        let many: Vec<String> = (0..=MAX_TARGETS).map(|number| format!("n{number}")).collect();
        let many = Propagation { targets: many, ..request(0, &[], vec![]) };
        assert_eq!(refused(many).kind(), Kind::ResourceExhausted);
    }
}
