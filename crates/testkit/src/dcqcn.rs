//! DCQCN's sender, recomputed from the whole history each time (Zhu et al., SIGCOMM 2015, section 3.1). No state is
//! carried from one question to the next: the cuts are found first, and then, between two of them, every increase.

/// The paper's letters; rates in bits per second, times in nanoseconds.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Letters {
    pub line: f64,
    pub least: f64,
    pub g: f64,
    pub first_alpha: f64,
    pub k_ns: u64,
    /// α changes once in K, whatever was cut.
    pub alpha_by_period: bool,
    /// No two cuts are closer.
    pub cut_interval_ns: u64,
    /// A cut forgets the old target only if the timer has expired since the cut before.
    pub keeps_target: bool,
    pub t_ns: u64,
    pub b_octets: Option<u64>,
    pub f: usize,
    pub r_ai: f64,
    pub r_hai: f64,
    /// A sender within a bit per second of the line rate is reset.
    pub is_released: bool,
}

/// Something that happened, at a time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum Happened {
    /// So many octets were sent.
    Sent(u64, u64),
    /// A CNP came.
    Cnp(u64),
}

/// The expected state of the sender at some time.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Answer {
    pub current: f64,
    pub target: f64,
    pub alpha: f64,
}

/// The state of the sender at `now_ns`, after all events, in the order of time; `None`: not limited.
pub fn answer(letters: &Letters, history: &[Happened], now_ns: u64) -> Option<Answer> {
    let cnps: Vec<u64> = history.iter().filter_map(cnp).collect();
    let first = *cnps.first()?;
    let cuts = cuts(letters, &cnps);
    let (mut current, mut target) = (letters.line, letters.line);
    let mut alpha_after_cut = letters.first_alpha;
    let mut timer_has_expired = true;
    for (number, (cut_ns, index)) in cuts.iter().enumerate() {
        let alpha = if letters.alpha_by_period {
            alpha_by_period(letters, &cnps, first, *cut_ns, *index)
        } else if number == 0 {
            letters.first_alpha
        } else {
            decayed(letters, alpha_after_cut, cuts[number - 1].0, *cut_ns)
        };
        if timer_has_expired || !letters.keeps_target {
            target = current;
        }
        current = (current * (1.0 - alpha / 2.0)).max(letters.least);
        target = target.max(current);
        alpha_after_cut = (1.0 - letters.g) * alpha + letters.g;
        let next_cut = cuts.get(number + 1);
        let end_ns = next_cut.map_or(now_ns, |cut| cut.0);
        let sent = sent_between(history, *index, next_cut.map(|cut| cut.1));
        let increases = increases(letters, *cut_ns, end_ns, &sent);
        timer_has_expired = increases.iter().any(|increase| increase.sent.is_none());
        for done in 0..increases.len() {
            increase(letters, &increases[..done], &mut current, &mut target);
            if letters.is_released && letters.line - current < 1.0 {
                return answer(letters, after(history, &increases[done]), now_ns);
            }
        }
    }
    let alpha = if letters.alpha_by_period {
        alpha_by_period(letters, &cnps, first, now_ns, cnps.len())
    } else {
        decayed(letters, alpha_after_cut, cuts.last()?.0, now_ns)
    };
    Some(Answer { current, target, alpha })
}

fn cnp(event: &Happened) -> Option<u64> {
    match event {
        Happened::Cnp(at) => Some(*at),
        Happened::Sent(..) => None,
    }
}

/// Events after an increase. A timer comes before all else at its time.
fn after<'a>(history: &'a [Happened], increase: &Increase) -> &'a [Happened] {
    match increase.sent {
        Some(index) => &history[index + 1..],
        None => {
            let is_before = |event: &&Happened| match event {
                Happened::Cnp(at) | Happened::Sent(at, _) => *at < increase.at_ns,
            };
            &history[history.iter().take_while(is_before).count()..]
        }
    }
}

/// An increase, and its event if it is one by octets.
struct Increase {
    at_ns: u64,
    sent: Option<usize>,
}

/// The CNPs that cut: their times, and which of the CNPs they are.
fn cuts(letters: &Letters, cnps: &[u64]) -> Vec<(u64, usize)> {
    let mut cuts: Vec<(u64, usize)> = Vec::new();
    for (index, at) in cnps.iter().enumerate() {
        if cuts.last().is_none_or(|last| *at >= last.0 + letters.cut_interval_ns) {
            cuts.push((*at, index));
        }
    }
    cuts
}

/// Events of sent octets between two CNPs, by number.
fn sent_between(history: &[Happened], after: usize, before: Option<usize>) -> Vec<(usize, u64, u64)> {
    let mut cnps_seen = 0;
    let mut sent = Vec::new();
    for (index, event) in history.iter().enumerate() {
        match event {
            Happened::Cnp(_) => cnps_seen += 1,
            Happened::Sent(at, octets) => {
                if cnps_seen > after && before.is_none_or(|before| cnps_seen <= before) {
                    sent.push((index, *at, *octets));
                }
            }
        }
    }
    sent
}

/// The increases between two cuts, in their order. At the same time, the timer's is the earlier one.
fn increases(letters: &Letters, from_ns: u64, to_ns: u64, sent: &[(usize, u64, u64)]) -> Vec<Increase> {
    let by_timer = |number| Increase { at_ns: from_ns + number * letters.t_ns, sent: None };
    let mut all: Vec<Increase> = (1..=(to_ns - from_ns) / letters.t_ns).map(by_timer).collect();
    if let Some(b_octets) = letters.b_octets {
        let mut total = 0;
        for (index, at_ns, octets) in sent {
            for _ in 0..(total + octets) / b_octets - total / b_octets {
                all.push(Increase { at_ns: *at_ns, sent: Some(*index) });
            }
            total += octets;
        }
    }
    all.sort_by_key(|increase| (increase.at_ns, increase.sent.is_some()));
    all
}

/// One more increase, after those in `done`.
fn increase(letters: &Letters, done: &[Increase], current: &mut f64, target: &mut f64) {
    let by_timer = done.iter().filter(|increase| increase.sent.is_none()).count();
    let by_octets = if letters.b_octets.is_some() { done.len() - by_timer } else { by_timer };
    if by_timer.max(by_octets) >= letters.f {
        let step = if by_timer.min(by_octets) > letters.f { letters.r_hai } else { letters.r_ai };
        *target = (*target + step).min(letters.line);
    }
    *current = (*target + *current) / 2.0;
}

/// Equation (2), for as many periods as have passed.
fn decayed(letters: &Letters, alpha: f64, from_ns: u64, to_ns: u64) -> f64 {
    alpha * (1.0 - letters.g).powf(((to_ns - from_ns) / letters.k_ns) as f64)
}

/// α of a NIC that checks once in K whether one of the first `known` CNPs came in that period.
fn alpha_by_period(letters: &Letters, cnps: &[u64], first_ns: u64, to_ns: u64, known: usize) -> f64 {
    let mut alpha = letters.first_alpha;
    for period in 0..(to_ns - first_ns) / letters.k_ns {
        let from = first_ns + period * letters.k_ns;
        let came = cnps[1..known.max(1)].iter().any(|at| (from..from + letters.k_ns).contains(at));
        alpha = (1.0 - letters.g) * alpha + if came { letters.g } else { 0.0 };
    }
    alpha
}
