//! Scheduler of classes: strict ones first, the others by deficit round robin (Shreedhar and Varghese, 1995).

use super::config::{CLASSES, ClassConfig, Scheduling};

/// Position among the weighted classes, and their credits. That of strict ones is last.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Schedule {
    quanta: [usize; CLASSES],
    deficits: [usize; CLASSES],
    turn: usize,
    /// The class whose turn it is has been given its quantum.
    begun: bool,
    /// The classes that are strict, bit n being class n.
    strict: u8,
}

impl Schedule {
    /// Applies the configuration of classes; credits are reset.
    pub(super) fn set(&mut self, classes: &[ClassConfig; CLASSES]) {
        *self = Schedule::default();
        for (class, config) in classes.iter().enumerate() {
            match config.scheduling {
                Scheduling::Strict => self.strict |= 1 << class,
                Scheduling::Weighted { quantum_octets } => self.quanta[class] = quantum_octets as usize,
            }
        }
    }

    /// The next class among those of `eligible`, bit n being class n, and the octets of a class's first frame from
    /// `first_len`. The caller sends the chosen frame.
    #[inline]
    pub(super) fn choose(&mut self, eligible: u8, first_len: impl Fn(usize) -> usize) -> Option<usize> {
        let strict = eligible & self.strict;
        if strict != 0 {
            return Some(7 - strict.leading_zeros() as usize);
        }
        if eligible == 0 { None } else { Some(self.choose_weighted(eligible, first_len)) }
    }

    /// Ends, since a round adds a quantum to each eligible class, of which there is one.
    fn choose_weighted(&mut self, eligible: u8, first_len: impl Fn(usize) -> usize) -> usize {
        loop {
            let class = self.turn;
            if eligible >> class & 1 == 1 {
                if !std::mem::replace(&mut self.begun, true) {
                    self.deficits[class] += self.quanta[class];
                }
                if let Some(rest) = self.deficits[class].checked_sub(first_len(class)) {
                    self.deficits[class] = rest;
                    return class;
                }
            }
            self.turn = (class + 1) % CLASSES;
            self.begun = false;
        }
    }

    /// A class has no frame left: its credit is not kept.
    #[inline]
    pub(super) fn is_empty(&mut self, class: usize) {
        if self.strict >> class & 1 == 1 {
            return;
        }
        self.deficits[class] = 0;
        if self.turn == class {
            self.turn = (class + 1) % CLASSES;
            self.begun = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(quanta: [u32; CLASSES]) -> Schedule {
        let mut classes = [ClassConfig::new(0); CLASSES];
        for (class, quantum_octets) in classes.iter_mut().zip(quanta).filter(|(_, quantum)| *quantum > 0) {
            class.scheduling = Scheduling::Weighted { quantum_octets };
        }
        let mut schedule = Schedule::default();
        schedule.set(&classes);
        schedule
    }

    #[test]
    fn strict_classes_are_served_first_the_highest_before_all() {
        let mut schedule = schedule([300, 300, 0, 0, 300, 0, 0, 300]);
        let mut chosen = |eligible| schedule.choose(eligible, |_| 100);
        assert_eq!(
            [chosen(0xFF), chosen(0b1011_1111), chosen(0b1001_1111), chosen(0b1001_0111)].map(Option::unwrap),
            [6, 5, 3, 2]
        );
        assert_eq!((chosen(0b1001_0011), chosen(0)), (Some(0), None));
    }

    /// Octets, not frames, are shared 3 : 1, though one class sends long frames and the other short ones.
    #[test]
    fn weights_share_octets() {
        let mut schedule = schedule([0, 3000, 1000, 0, 0, 0, 0, 0]);
        let len = |class: usize| if class == 1 { 4096 } else { 80 };
        let mut sent = [0; CLASSES];
        while sent.iter().sum::<usize>() < 40_000_000 {
            let class = schedule.choose(0b0110, len).unwrap();
            sent[class] += len(class);
        }
        let share = sent[1] as f64 / sent[2] as f64;
        assert!((2.99..3.01).contains(&share), "{sent:?}");
    }

    /// A class that has been empty or paused comes back without a claim on what it missed.
    #[test]
    fn an_idle_class_saves_no_credit() {
        let mut schedule = schedule([256, 256, 0, 0, 0, 0, 0, 0]);
        for _ in 0..1000 {
            assert_eq!(schedule.choose(0b01, |_| 1000), Some(0));
        }
        schedule.is_empty(1);
        let in_row = (0..100).take_while(|_| schedule.choose(0b11, |_| 1000) == Some(1)).count();
        assert!(in_row <= 1);
    }
}
