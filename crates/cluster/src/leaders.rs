//! Starts and ends of controllers: crashes, deposed leaders, leases of leaders, and their writes.

use crate::adapter::{self, Identity};
use crate::controller::{Controller, Output, PERIOD_NS, Party};
use crate::etcd::Weather;
use crate::outcome::{Finding, ViolationKind};
use crate::store::{Leader, NotLeading, Written};
use crate::world::{Task, World};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::time::Duration;

/// Interval for renewing a leader's lease, and at which a standby looks for a leader: those of the product.
const RENEWAL_NS: u64 = 1_000_000_000;
const STANDBY_NS: u64 = 200_000_000;

/// Requests of a write that still arrive when its controller ends are fewer.
const MOST_REQUESTS: u64 = 6;

impl World<'_> {
    pub(crate) fn start_controller(&mut self) {
        if self.controller.is_some() {
            return;
        }
        let now = self.now();
        let Some(leader) = self.lead() else {
            let next = now.after_ns(STANDBY_NS);
            self.faults.note(next);
            return self.tasks.push(next, 0, Task::RestartController);
        };
        self.starts += 1;
        let run = self.starts;
        let identity = Identity { new: self.rng.below(1 << 62) + 1, rebuilds: std::mem::take(&mut self.rebuilds) };
        let settings = adapter::settings(self.testbed.without, self.schedule);
        let mut out = Vec::new();
        match Controller::start(&self.store.state(), identity, settings, run, now, self.clock_ms, &mut out) {
            Ok(mut controller) => {
                controller.leader = leader;
                self.controller = Some(controller);
                self.faults.started(now, run > 1);
                self.checks.orders.clear();
                self.tasks.push(now.after_ns(PERIOD_NS), 0, Task::Period(run));
                self.count("controller start");
                self.log(&"the controller starts");
                self.carry_out_outputs(run, out);
            }
            Err(error) => self.violation(ViolationKind::Setup, Finding::Unknown, 0, error.to_string()),
        }
    }

    /// Becomes the leader; `None`: not yet. A store in a file has a leader without leadership.
    fn lead(&mut self) -> Option<Option<Leader>> {
        let (now, rng, is_rough) = (self.now(), self.rng_of_etcd(), self.is_rough());
        match self.store.lead(now, rng, is_rough) {
            None => Some(None),
            Some(Ok(leader)) => Some(Some(leader)),
            Some(Err(failed)) => {
                self.note_damage(failed);
                None
            }
        }
    }

    fn note_damage(&mut self, failed: NotLeading) {
        match failed {
            NotLeading::Yet => {}
            NotLeading::Damaged(text) => self.violation(ViolationKind::Store, Finding::Unknown, 0, text),
        }
    }

    pub(crate) fn rng_of_etcd(&self) -> Stream {
        Stream::new(self.schedule.seed, &format!("etcd at {}", self.now().as_ns()))
    }

    fn is_rough(&self) -> bool {
        self.now().as_ns() < self.schedule.faults_end_ns
    }

    fn weather(&self) -> Weather {
        if self.is_rough() { Weather::Rough } else { Weather::Fine }
    }

    /// Commits the present write of a leader, or fails; returns the outcome and the time beyond the usual.
    pub(crate) fn commit(&mut self, controller: &Controller) -> (Written, Duration) {
        let mut weather = self.weather();
        if std::mem::take(&mut self.store.fails_next) {
            if controller.leader.is_none() {
                return (Written::Unknown, Duration::ZERO);
            }
            weather = Weather::Ends(self.rng_of_etcd().below(MOST_REQUESTS) as u32);
        }
        let (outcome, waited) =
            self.store.commit(self.now(), controller.leader.as_ref(), &controller.writing(), weather);
        self.count(if waited > Duration::ZERO { "write delayed" } else { "write" });
        (outcome, waited)
    }

    /// The present write of a controller that ends is durable, or not, or later.
    fn commit_at_end(&mut self, controller: &Controller) {
        let writes = controller.writing();
        if writes.is_empty() || controller.outcome.is_some() {
            return;
        }
        let weather = Weather::Ends(self.rng_of_etcd().below(MOST_REQUESTS) as u32);
        self.store.commit(self.now(), controller.leader.as_ref(), &writes, weather);
    }

    /// A leader reads its store again after a write that may have failed; returns whether it can go on.
    pub(crate) fn reopen(&mut self, controller: &mut Controller, out: &mut Vec<Output>) -> bool {
        let now = self.now();
        let identity = self.rng.below(1 << 62);
        if let Some(leader) = &controller.leader
            && let Err(failed) = self.store.reopen(leader)
        {
            self.note_damage(failed);
            return false;
        }
        controller.recover(now, &self.store, identity, out);
        self.faults.started(now, true);
        self.checks.orders.clear();
        true
    }

    /// The controller's process ends.
    pub(crate) fn stop(&mut self, controller: Controller) {
        self.checks.keep_views(controller.core(), &self.flows);
        if self.rng.below(2) == 0 {
            self.commit_at_end(&controller);
        }
        // Some have just renewed their lease, and that of others is nearly over.
        if let Some(leader) = &controller.leader
            && self.rng.below(2) == 0
        {
            self.store.revoke(leader);
        }
        self.reset(controller.callers());
    }

    /// Another controller becomes the leader. The former goes on with those that are connected to it.
    pub(crate) fn depose(&mut self, for_ns: u64) {
        if self.former.is_some() {
            return;
        }
        let Some(mut former) = self.controller.take() else { return };
        self.checks.keep_views(former.core(), &self.flows);
        if self.rng.below(2) == 0 {
            self.commit_at_end(&former);
            former.outcome = Some(Written::Unknown);
        }
        if let Some(leader) = &former.leader {
            self.store.revoke(leader);
        }
        let (run, until) = (former.run, self.now().after_ns(for_ns));
        let parties = (0..self.agents.len()).map(Party::Node).chain((0..self.flows.len()).map(Party::Source));
        let rng = &mut self.rng;
        self.faults.follow_former = parties.filter(|_| rng.below(2) == 0).collect();
        self.former = Some(former);
        self.faults.note(until);
        self.tasks.push(until, 0, Task::EndFormer(run));
        self.log(&"the controller loses its lease");
        self.start_controller();
    }

    /// A write of a former leader, which its store refuses.
    pub(crate) fn former_writes(&mut self, run: u32) {
        let weather = self.weather();
        if let Some(former) = self.former.as_ref().filter(|former| former.run == run && former.outcome.is_none())
            && let Some(leader) = &former.leader
        {
            let (outcome, _) = self.store.commit(self.network.now(), Some(leader), &former.writing(), weather);
            self.count("write of a former leader");
            if outcome == Written::Durable {
                let text = "a former leader has committed a write".to_owned();
                self.violation(ViolationKind::Store, Finding::Unknown, 0, text);
            }
        }
        self.end_former(run);
    }

    /// The former leader ends: when it learns that it is none, by a write, or later.
    pub(crate) fn end_former(&mut self, run: u32) {
        if let Some(former) = self.former.take_if(|former| former.run == run) {
            self.log(&"the former controller ends");
            self.faults.follow_former.clear();
            self.reset(former.callers());
        }
    }

    /// Whether this start of the controller still runs, perhaps as a former leader.
    pub(crate) fn is_running(&self, run: u32) -> bool {
        [&self.controller, &self.former].into_iter().flatten().any(|controller| controller.run == run)
    }

    /// Whether the leader waits for a write longer than usual: etcd does not respond, or is not reached.
    pub(crate) fn waits_for_store(&self) -> bool {
        self.controller.as_ref().is_some_and(|controller| {
            let is_cut = self.faults.etcd_cut_until(controller.run).is_some_and(|until| self.now() < until);
            controller.outcome.is_some() || (is_cut && controller.is_writing())
        })
    }

    /// The controller that a party is connected to.
    pub(crate) fn controller_of(&self, party: Party) -> Option<u32> {
        let former = self.former.as_ref().filter(|_| self.faults.follow_former.contains(&party));
        former.or(self.controller.as_ref()).map(|controller| controller.run)
    }

    /// The leader does not reach etcd for a time.
    pub(crate) fn cut_etcd(&mut self, until: Instant) {
        let Some(controller) = self.controller.as_ref().filter(|_| self.store.is_in_etcd()) else { return };
        let run = controller.run;
        self.faults.etcd_cut = Some((run, until));
        self.faults.note(until);
    }

    /// A leader renews its lease, or ends when it is over.
    pub(crate) fn renew_leadership(&mut self, run: u32) {
        let now = self.now();
        let is_cut = self.faults.etcd_cut_until(run).is_some_and(|until| now < until);
        let Some(mut controller) = self.controller.take_if(|controller| controller.run == run) else { return };
        let leads = controller.leader.as_mut().is_none_or(|leader| match is_cut {
            true => now.since(leader.renewed) < srdma_etcd::LEASE,
            false if now < leader.renewed.after_ns(RENEWAL_NS) => true,
            false => self.store.renew(now, leader),
        });
        if leads {
            self.controller = Some(controller);
        } else {
            self.end_leader(controller);
        }
    }

    /// A leader has learned that it is none any more, and another controller becomes the leader.
    pub(crate) fn end_leader(&mut self, controller: Controller) {
        self.log(&"the controller is no longer the leader, and ends");
        self.count("leader ends");
        self.checks.keep_views(controller.core(), &self.flows);
        self.commit_at_end(&controller);
        self.faults.note(self.now());
        self.reset(controller.callers());
        self.start_controller();
    }

    /// Whether the store has the rows that were committed, and no others.
    pub(crate) fn check_store(&mut self) {
        let Some(controller) = self.controller.take() else { return };
        if let Some(leader) = &controller.leader
            && let Err(text) = self.store.check(leader)
        {
            self.violation(ViolationKind::Store, Finding::Unknown, 0, text);
        }
        self.controller = Some(controller);
    }
}
