//! DCQCN's parameters, as published and as NICs have them.

use crate::rate::{RateError, require, require_at_least, require_min_rate};
use srdma_wire::units::{GBIT_PER_S, MBIT_PER_S};

/// When α changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlphaUpdate {
    /// As in the paper, equations (1) and (2): each cut, and each period without one, counted from the last cut.
    AtCuts,
    /// As in ConnectX NICs: once in a period, up when a CNP came in it, down when none did.
    EveryPeriod,
}

/// When a cut remembers the current rate as the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetUpdate {
    /// Each time, as in the paper.
    EveryCut,
    /// Only when the timer has raised the rate since the last cut (ConnectX: `clamp_tgt_rate_after_time_inc`), so that
    /// several cuts in a row recover to where the first began.
    AfterTimerIncrease,
}

/// DCQCN+: increases by the extent of the congestion that the receiver tells in its CNPs (D284).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncastScale {
    /// The period of CNPs that α's period and that of increases are for, at least 1000: where the receiver's is longer,
    /// they are longer by the same factor. Steps are divided by the number of flows.
    pub period_ns: u64,
}

/// Parameters of a sender. The presets name their sources.
#[derive(Clone, Debug, PartialEq)]
pub struct DcqcnParameters {
    /// The port's rate: where a flow begins, and the most it recovers to.
    pub line_rate_bits_per_s: u64,
    /// The least rate, at least 1.
    pub min_rate_bits_per_s: u64,
    /// Weight of the newest observation in α, from 1/65536 to below 1: the paper's g.
    pub g: f64,
    /// α at the first CNP, 0 to 1.
    pub initial_alpha: f64,
    /// α's period, at least 100: the paper's K.
    pub alpha_interval_ns: u64,
    /// When α changes.
    pub alpha_update: AlphaUpdate,
    /// At most one cut in this time; a CNP that comes earlier only counts for α. Zero: every CNP cuts.
    pub decrease_interval_ns: u64,
    /// When a cut remembers the current rate.
    pub target_update: TargetUpdate,
    /// Period of the increase timer, at least 1000: the paper's T.
    pub increase_timer_ns: u64,
    /// Octets sent per increase, the paper's B, at least 1024; `None` switches this counter off.
    pub octets_per_increase: Option<u64>,
    /// Increases of fast recovery: the paper's F.
    pub fast_recovery_increases: u32,
    /// Step of an additive increase of the target: the paper's R_AI.
    pub additive_increase_bits_per_s: u64,
    /// Step of a hyper increase of the target: R_HAI.
    pub hyper_increase_bits_per_s: u64,
    /// A flow that is back at line rate is reset, so that its next CNP cuts by the initial α. Otherwise α decays
    /// further, and the first cut after a long time without CNPs is a small one.
    pub released_at_line_rate: bool,
    /// DCQCN+; `None`: DCQCN.
    pub incast: Option<IncastScale>,
}

impl DcqcnParameters {
    /// As published in the paper, SIGCOMM 2015, for ports of 40 Gbit/s: the reaction point's section and the parameters
    /// of its experiments. It gives no value for R_HAI and none for the least rate; these are QCN's, ten times R_AI and
    /// 10 Mbit/s (IEEE 802.1Qau).
    pub const fn sigcomm_2015(line_rate_bits_per_s: u64) -> Self {
        DcqcnParameters {
            line_rate_bits_per_s,
            min_rate_bits_per_s: 10 * MBIT_PER_S,
            g: 1.0 / 256.0,
            initial_alpha: 1.0,
            alpha_interval_ns: 55_000,
            alpha_update: AlphaUpdate::AtCuts,
            decrease_interval_ns: 50_000,
            target_update: TargetUpdate::EveryCut,
            increase_timer_ns: 55_000,
            octets_per_increase: Some(10_000_000),
            fast_recovery_increases: 5,
            additive_increase_bits_per_s: 40 * MBIT_PER_S,
            hyper_increase_bits_per_s: 400 * MBIT_PER_S,
            released_at_line_rate: false,
            incast: None,
        }
    }

    /// The defaults of ConnectX-4 and later NICs: "DCQCN CC Parameters" of NVIDIA's DOCA documentation (before it,
    /// Mellanox community document 2790), and what `mlxconfig query` prints for NICs in use (`RPG_MIN_DEC_FAC` 50: no
    /// cut takes more than half, as α/2 never does; `RPG_TIME_RESET` 300, `RPG_BYTE_RESET` 32767, `RPG_THRESHOLD` 1,
    /// `RPG_AI_RATE` 5, `RPG_HAI_RATE` 50, `RPG_MIN_RATE` 1, `DCE_TCP_G` 1019, `DCE_TCP_RTT` 1,
    /// `RATE_REDUCE_MONITOR_PERIOD` 4, `INITIAL_ALPHA_VALUE` 1023,
    /// `CLAMP_TGT_RATE` 0, `CLAMP_TGT_RATE_AFTER_TIME_INC` 1; `RPG_MAX_RATE` 0: the limit
    /// is released at the port's rate). The unit of `RPG_BYTE_RESET` is given as octets, which would be eight packets;
    /// it is taken as 64 octets, 2 MB in all, which is the default of test equipment. That reading is not confirmed.
    pub const fn connectx(line_rate_bits_per_s: u64) -> Self {
        DcqcnParameters {
            line_rate_bits_per_s,
            min_rate_bits_per_s: MBIT_PER_S,
            g: 5.0 / 1024.0,
            initial_alpha: 1023.0 / 1024.0,
            alpha_interval_ns: 1_000,
            alpha_update: AlphaUpdate::EveryPeriod,
            decrease_interval_ns: 4_000,
            target_update: TargetUpdate::AfterTimerIncrease,
            increase_timer_ns: 300_000,
            octets_per_increase: Some(32_767 * 64),
            fast_recovery_increases: 1,
            additive_increase_bits_per_s: 5 * MBIT_PER_S,
            hyper_increase_bits_per_s: 50 * MBIT_PER_S,
            released_at_line_rate: true,
            incast: None,
        }
    }

    /// The setting that the authors of HPCC compared with, "suggested by the vendor" (Li et al., SIGCOMM 2019, section
    /// 5.1, and `run.py --cc dcqcn` of their simulator): as ConnectX, with steps in proportion to the port's rate, g =
    /// 1/256, no octet counter and at least 1 Gbit/s. Switches mark between 100 kB and 400 kB per 25 Gbit/s, with up to
    /// 0.2.
    pub const fn hpcc_vendor(line_rate_bits_per_s: u64) -> Self {
        let mbit_per_s = line_rate_bits_per_s / MBIT_PER_S;
        DcqcnParameters {
            min_rate_bits_per_s: GBIT_PER_S,
            g: 1.0 / 256.0,
            initial_alpha: 1.0,
            octets_per_increase: None,
            released_at_line_rate: false,
            additive_increase_bits_per_s: 5 * MBIT_PER_S * mbit_per_s / 25_000,
            hyper_increase_bits_per_s: 50 * MBIT_PER_S * mbit_per_s / 25_000,
            ..Self::connectx(line_rate_bits_per_s)
        }
    }

    /// As [`Self::hpcc_vendor`], with the intervals of the paper of 2015 (`run.py --cc dcqcn_paper`).
    pub const fn hpcc_paper(line_rate_bits_per_s: u64) -> Self {
        DcqcnParameters {
            alpha_interval_ns: 50_000,
            decrease_interval_ns: 50_000,
            increase_timer_ns: 55_000,
            ..Self::hpcc_vendor(line_rate_bits_per_s)
        }
    }

    pub(super) fn validate(&self) -> Result<(), RateError> {
        require_at_least("line_rate_bits_per_s", self.line_rate_bits_per_s, 1)?;
        require_min_rate(self.min_rate_bits_per_s, self.line_rate_bits_per_s)?;
        require("g", self.g, self.g >= 1.0 / 65_536.0 && self.g < 1.0, "at least 1/65536 and below 1")?;
        require("initial_alpha", self.initial_alpha, (0.0..=1.0).contains(&self.initial_alpha), "0 to 1")?;
        require_at_least("alpha_interval_ns", self.alpha_interval_ns, 100)?;
        require_at_least("increase_timer_ns", self.increase_timer_ns, 1000)?;
        require_at_least("octets_per_increase", self.octets_per_increase.unwrap_or(u64::MAX), 1024)?;
        require_at_least("additive_increase_bits_per_s", self.additive_increase_bits_per_s, 1)?;
        require_at_least("hyper_increase_bits_per_s", self.hyper_increase_bits_per_s, 1)?;
        require_at_least("incast.period_ns", self.incast.map_or(u64::MAX, |incast| incast.period_ns), 1000)
    }
}
