//! HPCC's sender, as a function of its whole history (Li et al., SIGCOMM 2019, algorithm 1): the state after an event
//! is computed from the state after the one before, by recursion, and a link's earlier samples are looked up in the history.
//! Octets, seconds, and counters that never wrap.

/// The paper's parameters, in octets, octets per second and seconds.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Parameters {
    pub line: f64,
    pub t: f64,
    pub eta: f64,
    pub max_stage: u32,
    pub w_ai: f64,
    pub least_w: f64,
    /// The utilisation assumed for congestion without a trace.
    pub u_noticed: f64,
    /// Without feedback for so many nanoseconds the window grows by so many octets.
    pub recovery: Option<(u64, f64)>,
}

/// A sample of a link: octets sent by a time in nanoseconds, and octets queued.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sample {
    pub link: usize,
    pub at_ns: u64,
    pub sent: u64,
    pub waiting: u64,
    /// Octets per second.
    pub rate: f64,
}

/// Feedback to the sender.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug)]
pub struct Feedback {
    /// When, in nanoseconds.
    pub at_ns: u64,
    pub links: Vec<Sample>,
    /// It reports congestion beyond the samples.
    pub is_notice: bool,
}

/// The expected state of the sender.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct State {
    pub w: f64,
    pub u: f64,
    w_c: f64,
    stage: u32,
    w_c_from_ns: u64,
    /// From when on silence counts; nothing to recover without.
    feedback_at_ns: Option<u64>,
}

/// The state of the sender at `now_ns`, after all this feedback.
pub fn state_at(parameters: &Parameters, history: &[Feedback], now_ns: u64) -> State {
    let most = parameters.line * parameters.t;
    let Some((feedback, before)) = history.split_last() else {
        return State { w: most, u: 1.0, w_c: most, stage: 0, w_c_from_ns: 0, feedback_at_ns: None };
    };
    let mut state = state_at(parameters, before, feedback.at_ns);
    let mut fullest: Option<(f64, f64)> = None;
    let mut seconds_waited = 0.0;
    for sample in &feedback.links {
        seconds_waited += ((sample.waiting as f64 / sample.rate) * 1e9).floor() / 1e9;
        if let Some(earlier) = sample_before(before, sample).filter(|earlier| earlier.at_ns < sample.at_ns) {
            let seconds = (sample.at_ns - earlier.at_ns) as f64 / 1e9;
            let tx_rate = (sample.sent - earlier.sent) as f64 / seconds;
            let waiting = sample.waiting.min(earlier.waiting) as f64;
            let u = waiting / (sample.rate * parameters.t) + tx_rate / sample.rate;
            if fullest.is_none_or(|(most, _)| u > most) {
                fullest = Some((u, seconds));
            }
        }
    }
    if let Some((u, seconds)) = fullest {
        let tau = seconds.min(parameters.t);
        state.u = (1.0 - tau / parameters.t) * state.u + tau / parameters.t * u;
        compute_wind(parameters, &mut state, feedback.at_ns, seconds_waited);
    }
    if feedback.is_notice {
        state.u = state.u.max(parameters.u_noticed);
        compute_wind(parameters, &mut state, feedback.at_ns, 0.0);
    }
    state.feedback_at_ns = (state.w < most).then_some(feedback.at_ns);
    grown(parameters, state, now_ns)
}

/// The newest earlier sample of the same link; of two of the same time, the one that came first.
fn sample_before(before: &[Feedback], sample: &Sample) -> Option<Sample> {
    let of_link = before.iter().flat_map(|feedback| &feedback.links).filter(|other| other.link == sample.link);
    of_link.copied().min_by_key(|other| std::cmp::Reverse(other.at_ns))
}

fn compute_wind(parameters: &Parameters, state: &mut State, now_ns: u64, seconds_waited: f64) {
    let scales = state.u >= parameters.eta || state.stage >= parameters.max_stage;
    let w = if scales { state.w_c / (state.u / parameters.eta) } else { state.w_c } + parameters.w_ai;
    state.w = w.min(parameters.line * parameters.t).max(parameters.least_w);
    if now_ns >= state.w_c_from_ns {
        state.w_c = state.w;
        state.stage = if scales { 0 } else { state.stage + 1 };
        state.w_c_from_ns = now_ns + ((parameters.t + seconds_waited) * 1e9).round() as u64;
    }
}

/// Growth of the window without feedback.
fn grown(parameters: &Parameters, mut state: State, now_ns: u64) -> State {
    let most = parameters.line * parameters.t;
    if let (Some((interval_ns, step)), Some(from_ns)) = (parameters.recovery, state.feedback_at_ns) {
        let times = (now_ns - from_ns) / interval_ns;
        if times > 0 {
            state.w = (state.w + times as f64 * step).min(most);
            state.w_c = state.w;
            state.stage = 0;
        }
    }
    state
}
