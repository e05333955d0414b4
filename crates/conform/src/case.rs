//! Cases: frames sent to a device, and the frames that it must send.

use crate::Expected;

/// A frame at a port, from its destination MAC address on, without FCS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The device's port, by the name that the profile gives it.
    pub port: &'static str,
    /// The octets.
    pub octets: Vec<u8>,
}

/// Frames that are sent one after the other, and what the device sends before the next step.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Frames to send to the device.
    pub sent: Vec<Frame>,
    /// Expected frames, and no others. Frames of one port may arrive in any order.
    pub expected: Vec<Expected>,
    /// The time from frame to frame, in milliseconds; mostly none.
    pub gap_ms: u64,
    /// Time that the device may take, in milliseconds, beyond that of any device: a timer of it is waited for.
    pub takes_ms: u64,
}

/// One case. Its steps follow one another at one device. The device is as configured at the start; other cases do not
/// affect it, since each has a group or flow of its own.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name within the profile.
    pub name: &'static str,
    /// Purpose, a sentence.
    pub about: &'static str,
    /// The requirements that it shows: ids of `docs/spec/requirements.md`, or sections of RFCs.
    pub requirements: &'static [&'static str],
    /// Tests of other implementations that it is written after, such as `Linux selftests: srv6_end_flavors_test.sh`.
    pub sources: Vec<&'static str>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Case {
    /// A case with nothing in it.
    pub(crate) fn new(name: &'static str, about: &'static str, requirements: &'static [&'static str]) -> Self {
        Case { name, about, requirements, sources: Vec::new(), steps: vec![Step::default()] }
    }

    /// Sends a frame in the last step.
    pub(crate) fn send(mut self, frame: Frame) -> Self {
        self.last().sent.push(frame);
        self
    }

    /// Expects a frame in the last step.
    pub(crate) fn expect(mut self, expected: Expected) -> Self {
        self.last().expected.push(expected);
        self
    }

    /// Expects frames in the last step.
    pub(crate) fn expect_all(self, expected: impl IntoIterator<Item = Expected>) -> Self {
        expected.into_iter().fold(self, Case::expect)
    }

    /// So much time passes between the frames of the last step.
    pub(crate) fn gap_ms(mut self, gap_ms: u64) -> Self {
        self.last().gap_ms = gap_ms;
        self
    }

    /// The last step takes so long.
    pub(crate) fn takes_ms(mut self, takes_ms: u64) -> Self {
        self.last().takes_ms = takes_ms;
        self
    }

    /// Goes on with the next step.
    pub(crate) fn then(mut self) -> Self {
        self.steps.push(Step::default());
        self
    }

    fn last(&mut self) -> &mut Step {
        if self.steps.is_empty() {
            self.steps.push(Step::default());
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }
}
