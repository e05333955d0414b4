//! Checks of end-to-end runs.

use super::results::{EndToEndResults, EndToEndRun};
use super::scenario::EndToEndScenario;
use crate::wan::Claim;

/// Largest share of the receivers' responses that may reach the source, by the number of receivers: those of one
/// receiver, and as many again for the nodes' responses when the source goes back (rule R2).
const SHARES_OF_ONE: u64 = 2;

impl EndToEndResults {
    /// The checks of each seed.
    pub fn claims(&self, plan: &EndToEndScenario) -> Vec<Claim> {
        self.runs.iter().flat_map(|run| run.claims(plan)).collect()
    }
}

impl EndToEndRun {
    /// The seed, and what restarted.
    pub fn name(&self) -> String {
        match &self.restarted {
            Some(node) => format!("seed {}, {node} restarts", self.seed),
            None => format!("seed {}", self.seed),
        }
    }

    fn claims(&self, plan: &EndToEndScenario) -> Vec<Claim> {
        let mut claims = vec![self.finishes(plan), self.identical(plan), self.egress(), self.invariants()];
        claims.push(self.aggregated());
        if plan.section.senders.get() > 0 {
            claims.extend([self.notified_senders(), self.gateway_paused(), self.pauses_end()]);
        }
        if plan.section.loss.get() > 0.0 {
            claims.push(self.lost());
        }
        if plan.section.restart.is_some() {
            claims.push(self.restarts());
        }
        claims
    }

    fn claim(&self, expected: String, found: String, holds: bool) -> Claim {
        Claim { at: self.name(), expected, found, holds }
    }

    fn finishes(&self, plan: &EndToEndScenario) -> Claim {
        let limit_ms = plan.section.limit_ms.get();
        let found = match (self.completion_ns, &self.failure) {
            (Some(ns), _) => format!("{:.2} ms", ns as f64 / 1e6),
            (None, Some(failure)) => format!("failed: {failure}"),
            (None, None) => format!("{} octets acknowledged", self.acknowledged.last().unwrap_or(&0.0)),
        };
        let holds = self.completion_ns.is_some() && self.failure.is_none();
        self.claim(format!("the transfer finishes within {limit_ms} ms"), found, holds)
    }

    /// MT-5.2-4 and all before it: the receivers have exactly the source's octets.
    fn identical(&self, plan: &EndToEndScenario) -> Claim {
        let same = self.receivers.iter().filter(|receiver| receiver.is_identical && receiver.sha256 == self.sha256);
        let (same, all) = (same.count(), plan.section.receivers());
        let expected = format!("the memory of {all} receivers has the source's SHA-256");
        self.claim(expected, format!("{same} have {}…", &self.sha256[..8]), same == all)
    }

    /// The source's link carries each transmission of a packet once, whatever the number of receivers; so does the
    /// WAN: otherwise the headend would receive more.
    fn egress(&self) -> Claim {
        let (packets, again, frames) = (self.packets, self.retransmitted, self.source_frames);
        let times = frames as f64 / (packets + again).max(1) as f64;
        let found = format!(
            "{frames} frames for {packets} packets and {again} retransmissions: {times:.2}×; {} arrived at the headend",
            self.headend_packets
        );
        let holds = frames == packets + again && self.packets_sent == frames && self.headend_packets <= frames;
        self.claim("the source's link carries each transmission exactly once".to_owned(), found, holds)
    }

    /// MT-5.3.1-1, MT-5.3.2-1.
    fn invariants(&self) -> Claim {
        let found = match &self.first_violation {
            None => format!("{} violations in {} responses", self.invariant_violations, self.responses_checked),
            Some(first) => format!("{} violations: {first}", self.invariant_violations),
        };
        let expected = "no ACK reaches the source for a PSN that a receiver has not acknowledged".to_owned();
        self.claim(expected, found, self.invariant_violations == 0 && self.responses_checked > 0)
    }

    /// MT-5.3-1.
    fn aggregated(&self) -> Claim {
        let at_source = self.responses_checked + self.cnps_at_source;
        let of_receivers = self.acks_of_receivers + self.naks_of_receivers + self.cnps_of_receivers;
        let most = SHARES_OF_ONE * of_receivers / (self.receivers.len() as u64).max(1);
        let found = format!(
            "{at_source} of {of_receivers}: {} of {} ACKs, {} of {} NAKs, {} of {} CNPs",
            self.acks_at_source,
            self.acks_of_receivers,
            self.naks_at_source,
            self.naks_of_receivers,
            self.cnps_at_source,
            self.cnps_of_receivers
        );
        let expected = format!("responses are aggregated: at most {most} reach the source");
        self.claim(expected, found, at_source > 0 && at_source <= most)
    }

    /// CN-4.2-2.
    fn notified_senders(&self) -> Claim {
        let (sent, source, others) = (self.end_e_sent, self.fast_cnps_at_source, self.fast_cnps_at_others);
        let found = format!("{sent} sent by END.E, {source} received by the source, {others} by the other senders");
        let holds = sent > 0 && source > 0 && others > 0 && source + others <= sent;
        self.claim("the congested node notifies the senders by END.E".to_owned(), found, holds)
    }

    /// CN-4.1-2, CN-4.1-3.
    fn gateway_paused(&self) -> Claim {
        let (sent, taken, paused_us) = (self.end_c_sent, self.end_c_taken, self.gateway_paused_ns as f64 / 1e3);
        let found =
            format!("{sent} pause notifications to END.C sent, {taken} accepted, gateway paused for {paused_us:.0} µs");
        let holds = sent > 0 && taken > 0 && taken <= sent && self.gateway_paused_ns > 0;
        self.claim("the congested node pauses the gateway by END.C".to_owned(), found, holds)
    }

    /// D62.
    fn pauses_end(&self) -> Claim {
        let (longest_us, hold_us) = (self.longest_hold_ns as f64 / 1e3, self.hold_ns as f64 / 1e3);
        let still = if self.still_paused.is_empty() { "none".to_owned() } else { self.still_paused.join("; ") };
        let (expired, resumes) = (self.end_c_expired, self.end_c_resumes);
        let found = format!("at most {longest_us:.0} µs, {resumes} resumed, {expired} expired; still paused: {still}");
        let holds = self.longest_hold_ns <= self.hold_ns && self.still_paused.is_empty() && self.end_c_barred == 0;
        self.claim(format!("no pause lasts longer than its hold time of {hold_us:.0} µs, none remains"), found, holds)
    }

    fn lost(&self) -> Claim {
        let found = format!("{} lost on links, {} retransmitted", self.lost_on_links, self.retransmitted);
        self.claim("frames are lost".to_owned(), found, self.lost_on_links > 0 && self.retransmitted > 0)
    }

    /// D17.
    fn restarts(&self) -> Claim {
        let before = self.acknowledged_at_restart.unwrap_or(0);
        let share = 100.0 * before as f64 / self.octets as f64;
        let found = match &self.restarted {
            Some(node) => format!("{node}, at {share:.0} % acknowledged; {} timeouts", self.timeouts),
            None => "nothing restarted".to_owned(),
        };
        let holds = self.restarted.is_some() && before > 0 && before < self.octets;
        self.claim("a switch restarts during the transfer".to_owned(), found, holds)
    }
}
