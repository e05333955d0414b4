//! A run with an observer. The observer changes nothing: snapshots are taken between two events.

use crate::{Moment, Scene};
use std::io;

/// Observer of a run.
pub trait Spectator {
    /// The run begins.
    ///
    /// # Errors
    ///
    /// Those of what it makes of it; the run ends with them.
    fn begin(&mut self, scene: &Scene) -> io::Result<()>;

    /// The run is so now.
    ///
    /// # Errors
    ///
    /// The same.
    fn see(&mut self, moment: &Moment) -> io::Result<()>;
}

/// Time between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So many nanoseconds at least.
    Every(u64),
    /// A step of the run's own at first, and twice as long whenever half as many again as usual have been shown:
    /// however long a run is, there are not many. The larger the network, the fewer.
    Sparing,
}

/// Moments at the first distance with [`Pace::Sparing`], in networks of up to 400 links and of many more.
const USUAL: u64 = 400;
const LEAST: u64 = 50;

/// Links times moments are no more than this where that leaves [`LEAST`] moments.
const LINK_MOMENTS: u64 = 160_000;

/// A run on its way to who is shown it.
pub struct Shown<'a> {
    spectator: &'a mut (dyn Spectator + Send),
    pace: Pace,
    every_ns: u64,
    next_ns: u64,
    /// Moments until the distance doubles.
    left: u64,
    usual: u64,
}

impl<'a> Shown<'a> {
    /// Nothing has been shown yet.
    pub fn new(spectator: &'a mut (dyn Spectator + Send), pace: Pace) -> Self {
        Shown { spectator, pace, every_ns: 1, next_ns: 0, left: u64::MAX, usual: USUAL }
    }

    /// The run begins, whose own steps are so long.
    ///
    /// # Errors
    ///
    /// Those of the spectator.
    pub fn begin(&mut self, scene: &Scene, step_ns: u64) -> io::Result<()> {
        self.usual = (LINK_MOMENTS / (scene.links.len() as u64).max(1)).clamp(LEAST, USUAL);
        (self.every_ns, self.left) = match self.pace {
            Pace::Every(every_ns) => (every_ns, u64::MAX),
            Pace::Sparing => (step_ns, self.usual),
        };
        self.next_ns = self.every_ns;
        self.spectator.begin(scene)
    }

    /// Shows the moment if it is time for one.
    ///
    /// # Errors
    ///
    /// Those of the spectator.
    pub fn look(&mut self, now_ns: u64, moment: impl FnOnce() -> Moment) -> io::Result<()> {
        if now_ns < self.next_ns {
            return Ok(());
        }
        self.left -= 1;
        if self.left == 0 {
            self.every_ns = self.every_ns.saturating_mul(2);
            self.left = self.usual / 2;
        }
        self.next_ns = now_ns.saturating_add(self.every_ns);
        self.spectator.see(&moment())
    }

    /// The run is over, and ends so.
    ///
    /// # Errors
    ///
    /// Those of the spectator.
    pub fn end(&mut self, moment: &Moment) -> io::Result<()> {
        self.spectator.see(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::SceneLink;

    #[derive(Default)]
    struct Times(Vec<u64>);

    impl Spectator for Times {
        fn begin(&mut self, _: &Scene) -> io::Result<()> {
            Ok(())
        }

        fn see(&mut self, moment: &Moment) -> io::Result<()> {
            self.0.push(moment.now_ns);
            Ok(())
        }
    }

    /// The times that are shown of so many steps of 10 ns.
    fn times(pace: Pace, links: usize, steps: u64) -> Vec<u64> {
        let link = SceneLink { ends: ["a".to_owned(), "b".to_owned()], mtu: 1500, groups: 0 };
        let scene = Scene { root: None, places: Vec::new(), links: vec![link; links], groups: Vec::new() };
        let mut times = Times::default();
        let mut shown = Shown::new(&mut times, pace);
        shown.begin(&scene, 10).unwrap();
        for step in 1..=steps {
            let now_ns = step * 10;
            let moment = || Moment { now_ns, links: Vec::new(), places: Vec::new(), groups: Vec::new() };
            shown.look(now_ns, moment).unwrap();
        }
        times.0
    }

    #[test]
    fn a_fixed_pace_is_kept() {
        assert_eq!(times(Pace::Every(25), 1, 12), [30, 60, 90, 120]);
        assert_eq!(times(Pace::Every(1), 1, 3), [10, 20, 30]);
    }

    #[test]
    fn a_long_run_takes_few_moments() {
        let all = times(Pace::Sparing, 100, 400);
        assert_eq!(all, (1..=400).map(|step| step * 10).collect::<Vec<u64>>());
        let long = times(Pace::Sparing, 100, 1_000_000);
        assert!(long.len() < 3000, "{}", long.len());
        assert!(long.is_sorted_by(|one, other| one < other));
        assert_eq!(times(Pace::Sparing, 20_000, 1000)[48..52], [490, 500, 520, 540]);
    }
}
