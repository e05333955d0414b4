//! Sources that die and resume their groups, and the checks of what the controller makes of it (D193).

use crate::adapter;
use crate::application::MAX_FLOWS;
use crate::flow::{Flow, Step};
use crate::outcome::{Finding, ViolationKind};
use crate::world::{Task, World};
use srdma_api::GroupState;
use srdma_wire::Instant;

impl World<'_> {
    /// The process of a group's source dies, and its next one begins at a time.
    pub(crate) fn kill_source(&mut self, group: usize, until: Instant) {
        let may_begin = self.flows.len() < MAX_FLOWS * self.schedule.groups.len();
        let is_alive = |flow: &usize| {
            let state = &self.flows[*flow];
            !state.is_over && !state.is_closed && state.id.is_some()
        };
        let Some(flow) = self.flow_of[group].filter(|flow| may_begin && is_alive(flow)) else { return };
        self.faults.note(until);
        let id = self.flows[flow].id;
        self.count_repairs(|other| Some(other) == id);
        let state = &mut self.flows[flow];
        (state.is_over, state.has_died) = (true, true);
        state.end_source(&mut self.network);
        self.log(&format_args!("the source of flow {flow} dies"));
        self.tasks.push(until, 0, Task::Resume(flow));
    }

    /// The next process of a source resumes its group; receivers follow to it.
    pub(crate) fn resume(&mut self, former: usize) {
        let state = &self.flows[former];
        let (group, resumes) = (state.group, state.id.map(|id| (id, state.qpn)));
        let receivers: Vec<usize> = state.participants.keys().copied().collect();
        // What it had to do, it does later.
        let later = state.steps.iter().copied().filter(|step| matches!(step, Step::Leave(_) | Step::Close));
        let later: Vec<Step> = later.collect();
        self.begin(group);
        let Some(number) = self.flow_of[group].filter(|number| *number != former) else { return };
        self.flows[number].follow(resumes, &receivers, &later);
        self.count("source resumes");
    }

    /// A group is resumed at once or not at all: what has answered that it is has closed the former, and a group that
    /// ends without its application has a successor.
    pub(crate) fn check_succession(&mut self) {
        let Some(core) = self.controller.as_ref().map(|controller| controller.core()) else { return };
        if self.faults.store_changed {
            return;
        }
        let mut wrong = Vec::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let is_there = |id: u32| adapter::shown_state(core, id).is_some_and(|state| state != GroupState::Closing);
            if let (Some(id), Some((former, _))) = (flow.id, flow.resumes)
                && is_there(former)
            {
                wrong.push((number, format!("group {former} is not closed, though group {id} has resumed it")));
            }
            let Some(id) = flow.id.filter(|_| flow.has_died) else { continue };
            let is_last = self.flow_of[flow.group].is_none_or(|last| !self.flows[last].is_closed);
            if is_last && !is_there(id) && adapter::successor(core, id).is_none() {
                wrong.push((number, format!("group {id} has ended, and receivers find no successor")));
            }
        }
        for (flow, text) in wrong {
            self.violation(ViolationKind::Succession, Finding::Unknown, flow, format!("flow {flow}: {text}"));
        }
    }
}

impl Flow {
    /// It resumes a group, and these receivers follow to it.
    fn follow(&mut self, resumes: Option<(u32, srdma_wire::Qpn)>, receivers: &[usize], later: &[Step]) {
        self.resumes = resumes;
        let joins = receivers.iter().map(|receiver| Step::Join(*receiver));
        // A group whose receivers have all left begins with its first ones.
        if !receivers.is_empty() {
            self.steps = [Step::Create].into_iter().chain(joins).chain([Step::Commit]).collect();
        }
        self.steps.extend(later);
    }
}
