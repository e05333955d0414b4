//! Every measurement of the dataplane, and the selection among them.

use super::cases::{self, Case, Until, Work, WorkingSet};
use super::measure::Bench;
use super::row::{MemoryRow, Row};
use super::{aggregation, fast_cnp, repair, steering, wan, yardsticks};
use anyhow::ensure;
use std::collections::BTreeSet;

/// Repetitions inside L2 for each one outside.
pub const SHORT_REPETITIONS: u32 = 10;

/// Routes of a full table of the Internet, and more; for look-ups alone.
const MANY_ROUTES: usize = 1_000_000;

/// The points whose case has one of these names or, where no case has it, contains it; all points without names.
/// Case-insensitive.
///
/// # Errors
///
/// If a name selects no case; the error lists all cases.
pub fn select(points: Vec<Point>, asked: &[String]) -> anyhow::Result<Vec<Point>> {
    let names: BTreeSet<String> = points.iter().map(|point| point.name().to_lowercase()).collect();
    for text in asked {
        ensure!(
            names.iter().any(|name| name.contains(&text.to_lowercase())),
            "--case {text}: no case has this in its name; there are:\n  {}",
            points.iter().map(Point::name).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("\n  ")
        );
    }
    let is_asked = |name: &str, text: &str| if names.contains(text) { name == text } else { name.contains(text) };
    let asked: Vec<String> = asked.iter().map(|text| text.to_lowercase()).collect();
    let keeps = |point: &Point| {
        let name = point.name().to_lowercase();
        asked.is_empty() || asked.iter().any(|text| is_asked(&name, text))
    };
    Ok(points.into_iter().filter(keeps).collect())
}

/// A measurement: one row, or the memory of groups.
#[derive(Debug)]
pub struct Point(Kind);

#[derive(Debug)]
enum Kind {
    Packet {
        case: Case,
        frame_octets: usize,
        routes: usize,
        working_set: WorkingSet,
    },
    Yardstick(yardsticks::Yardstick),
    Aggregation(aggregation::Aggregation),
    FastCnp(fast_cnp::FastCnp),
    Steering(steering::Steering),
    Wan(wan::Wan),
    Repair(repair::Repair),
    /// Measured before anything else.
    GroupMemory,
}

/// Result of a [`Point`].
#[derive(Debug)]
pub enum Measured {
    /// Time of a case.
    Time(Row),
    /// Memory of groups.
    Memory(Vec<MemoryRow>),
}

/// All points, or those of the smallest frames, 10 routes and the working set inside L2.
pub fn points(quick: bool) -> Vec<Point> {
    let all_sizes = [cases::SMALL, 1500, 4200];
    let all_routes = [10, 100_000];
    let all_sets = [WorkingSet::InsideL2, WorkingSet::Memory];
    let (sizes, routes, sets) = if quick {
        (&all_sizes[..1], &all_routes[..1], &all_sets[..1])
    } else {
        (&all_sizes[..], &all_routes[..], &all_sets[..])
    };
    let mut points = vec![Kind::GroupMemory];
    for &working_set in sets {
        for &routes in routes {
            for case in Case::all() {
                points.extend(sizes.iter().map(|&size| Kind::Packet { case, frame_octets: size, routes, working_set }));
            }
        }
    }
    if !quick {
        let case = Case { work: Work::Ipv6, until: Until::Queued };
        let many = |working_set| Kind::Packet { case, frame_octets: cases::SMALL, routes: MANY_ROUTES, working_set };
        points.extend(sets.iter().copied().map(many));
    }
    points.extend(aggregation::Aggregation::ALL.into_iter().map(Kind::Aggregation));
    points.extend(fast_cnp::FastCnp::ALL.into_iter().map(Kind::FastCnp));
    points.extend(steering::Steering::ALL.into_iter().map(Kind::Steering));
    points.extend(wan::Wan::ALL.into_iter().map(Kind::Wan));
    points.extend(repair::Repair::ALL.into_iter().map(Kind::Repair));
    points.extend(yardsticks::Yardstick::ALL.into_iter().map(Kind::Yardstick));
    points.into_iter().map(Point).collect()
}

impl Point {
    /// Name of the case.
    pub fn name(&self) -> String {
        match &self.0 {
            Kind::Packet { case, .. } => case.name(),
            Kind::Yardstick(yardstick) => yardstick.name(),
            Kind::Aggregation(aggregation) => aggregation.name(),
            Kind::FastCnp(fast_cnp) => fast_cnp.name(),
            Kind::Steering(steering) => steering.name(),
            Kind::Wan(wan) => wan.name(),
            Kind::Repair(repair) => repair.name(),
            Kind::GroupMemory => "memory of a group".to_owned(),
        }
    }

    fn working_set(&self) -> WorkingSet {
        match &self.0 {
            Kind::Packet { working_set, .. } => *working_set,
            Kind::Yardstick(_)
            | Kind::Aggregation(_)
            | Kind::FastCnp(_)
            | Kind::Steering(_)
            | Kind::Wan(_)
            | Kind::Repair(_) => WorkingSet::InsideL2,
            Kind::GroupMemory => WorkingSet::Memory,
        }
    }

    /// Measures it: `repetitions` times, inside L2 [`SHORT_REPETITIONS`] times as often.
    ///
    /// # Errors
    ///
    /// If the case forwards wrongly.
    pub fn measure(&self, bench: &mut Bench<'_>, repetitions: u32) -> anyhow::Result<Measured> {
        let repetitions = match self.working_set() {
            WorkingSet::InsideL2 => repetitions * SHORT_REPETITIONS,
            WorkingSet::Memory => repetitions,
        };
        let row = match self.0 {
            Kind::Packet { case, frame_octets, routes, working_set } => {
                bench.packets(case, frame_octets, routes, working_set, repetitions)?
            }
            Kind::Yardstick(yardstick) => bench.yardstick(yardstick, repetitions)?,
            Kind::Aggregation(aggregation) => bench.aggregation(aggregation, repetitions)?,
            Kind::FastCnp(fast_cnp) => bench.fast_cnp(fast_cnp, repetitions)?,
            Kind::Steering(steering) => bench.steering(steering, repetitions)?,
            Kind::Wan(wan) => bench.wan(wan, repetitions)?,
            Kind::Repair(repair) => bench.repair(repair, repetitions)?,
            Kind::GroupMemory => return Ok(Measured::Memory(aggregation::memory()?)),
        };
        Ok(Measured::Time(row))
    }
}
