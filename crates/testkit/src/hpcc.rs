//! HPCC's sender, as a function of its whole history (Li et al., SIGCOMM 2019, algorithm 1): the state after an event
//! is computed from the state after the one before, by recursion, and what a link said before is looked up in the history.
//! Octets, seconds, and counters that never wrap.

/// The paper's letters, in octets, octets per second and seconds.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Letters {
    pub line: f64,
    pub t: f64,
    pub eta: f64,
    pub max_stage: u32,
    pub w_ai: f64,
    pub least_w: f64,
    /// What congestion counts as that no trace tells of.
    pub u_noticed: f64,
    /// Without news for so many nanoseconds the window grows by so many octets.
    pub recovery: Option<(u64, f64)>,
}

/// What a link said: how many octets it had sent at a time in nanoseconds, and how many waited.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Said {
    pub link: usize,
    pub at_ns: u64,
    pub sent: u64,
    pub waiting: u64,
    /// Octets per second.
    pub rate: f64,
}

/// What came to the sender.
#[derive(Clone, Debug)]
pub struct News {
    /// When, in nanoseconds.
    pub at_ns: u64,
    /// What links said in it.
    pub links: Vec<Said>,
    /// It tells of congestion beyond what the links say.
    pub is_notice: bool,
}

/// What the sender should have.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Answer {
    pub w: f64,
    pub u: f64,
    w_c: f64,
    stage: u32,
    w_c_from_ns: u64,
    /// From when on silence counts; nothing to recover without.
    news_at_ns: Option<u64>,
}

/// What the sender has at `now_ns`, after all this news.
pub fn answer(letters: &Letters, history: &[News], now_ns: u64) -> Answer {
    let most = letters.line * letters.t;
    let Some((news, before)) = history.split_last() else {
        return Answer { w: most, u: 1.0, w_c: most, stage: 0, w_c_from_ns: 0, news_at_ns: None };
    };
    let mut state = answer(letters, before, news.at_ns);
    let mut fullest: Option<(f64, f64)> = None;
    let mut seconds_waited = 0.0;
    for said in &news.links {
        seconds_waited += ((said.waiting as f64 / said.rate) * 1e9).floor() / 1e9;
        if let Some(earlier) = said_before(before, said).filter(|earlier| earlier.at_ns < said.at_ns) {
            let seconds = (said.at_ns - earlier.at_ns) as f64 / 1e9;
            let tx_rate = (said.sent - earlier.sent) as f64 / seconds;
            let waiting = said.waiting.min(earlier.waiting) as f64;
            let u = waiting / (said.rate * letters.t) + tx_rate / said.rate;
            if fullest.is_none_or(|(most, _)| u > most) {
                fullest = Some((u, seconds));
            }
        }
    }
    if let Some((u, seconds)) = fullest {
        let tau = seconds.min(letters.t);
        state.u = (1.0 - tau / letters.t) * state.u + tau / letters.t * u;
        compute_wind(letters, &mut state, news.at_ns, seconds_waited);
    }
    if news.is_notice {
        state.u = state.u.max(letters.u_noticed);
        compute_wind(letters, &mut state, news.at_ns, 0.0);
    }
    if state.w < most {
        state.news_at_ns = Some(news.at_ns);
    }
    grown(letters, state, now_ns)
}

/// The newest that the same link said before; of two of the same time, the one that came first.
fn said_before(before: &[News], said: &Said) -> Option<Said> {
    let of_link = before.iter().flat_map(|news| &news.links).filter(|other| other.link == said.link);
    of_link.copied().min_by_key(|other| std::cmp::Reverse(other.at_ns))
}

fn compute_wind(letters: &Letters, state: &mut Answer, now_ns: u64, seconds_waited: f64) {
    let scales = state.u >= letters.eta || state.stage >= letters.max_stage;
    let w = if scales { state.w_c / (state.u / letters.eta) } else { state.w_c } + letters.w_ai;
    state.w = w.min(letters.line * letters.t).max(letters.least_w);
    if now_ns >= state.w_c_from_ns {
        state.w_c = state.w;
        state.stage = if scales { 0 } else { state.stage + 1 };
        state.w_c_from_ns = now_ns + ((letters.t + seconds_waited) * 1e9).round() as u64;
    }
}

/// What silence makes of it.
fn grown(letters: &Letters, mut state: Answer, now_ns: u64) -> Answer {
    let most = letters.line * letters.t;
    if let (Some((interval_ns, step)), Some(from_ns)) = (letters.recovery, state.news_at_ns) {
        let times = (now_ns - from_ns) / interval_ns;
        if times > 0 {
            state.w = (state.w + times as f64 * step).min(most);
            state.w_c = state.w;
            state.stage = 0;
        }
        if state.w >= most {
            state.news_at_ns = None;
        }
    }
    state
}
