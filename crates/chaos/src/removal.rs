//! Removal of parts of a schedule. The rest is renumbered so that it keeps its meaning.

use crate::schedule::{Attacker, Claim, Event, Forgery, Insider, Schedule, UntrueResponse};

/// The new index of `position` after `gone` is removed; `None` for `gone` itself.
fn moved(position: usize, gone: usize) -> Option<usize> {
    match position.cmp(&gone) {
        std::cmp::Ordering::Less => Some(position),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(position - 1),
    }
}

/// New indices of groups, receivers and nodes; `None` for the removed one.
struct Renumbering {
    group: fn(usize, usize) -> Option<usize>,
    receiver: fn(usize, usize) -> Option<usize>,
    node: fn(usize, usize) -> Option<usize>,
    gone: usize,
}

fn stays(position: usize, _: usize) -> Option<usize> {
    Some(position)
}

impl Renumbering {
    const STAY: Renumbering = Renumbering { group: stays, receiver: stays, node: stays, gone: usize::MAX };

    fn group(&self, group: usize) -> Option<usize> {
        (self.group)(group, self.gone)
    }

    fn receiver(&self, receiver: usize) -> Option<usize> {
        (self.receiver)(receiver, self.gone)
    }

    fn node(&self, node: usize) -> Option<usize> {
        (self.node)(node, self.gone)
    }

    /// The event with new indices; `None` when it refers to a removed part.
    fn event(&self, event: &Event) -> Option<Event> {
        Some(match event {
            Event::CrashNode { node, for_ns } => Event::CrashNode { node: self.node(*node)?, for_ns: *for_ns },
            Event::CutNode { node, for_ns } => Event::CutNode { node: self.node(*node)?, for_ns: *for_ns },
            Event::CutReceiver { receiver, for_ns } => {
                Event::CutReceiver { receiver: self.receiver(*receiver)?, for_ns: *for_ns }
            }
            Event::KillReceiver { receiver } => Event::KillReceiver { receiver: self.receiver(*receiver)? },
            Event::FreezeReceiver { receiver, for_ns } => {
                Event::FreezeReceiver { receiver: self.receiver(*receiver)?, for_ns: *for_ns }
            }
            Event::SlowReceiver { receiver, for_ns, by_ns } => {
                Event::SlowReceiver { receiver: self.receiver(*receiver)?, for_ns: *for_ns, by_ns: *by_ns }
            }
            Event::StarveReceiver { receiver, for_ns } => {
                Event::StarveReceiver { receiver: self.receiver(*receiver)?, for_ns: *for_ns }
            }
            Event::FailReceiver { receiver, group } => {
                Event::FailReceiver { receiver: self.receiver(*receiver)?, group: self.group(*group)? }
            }
            Event::Congest { receiver, for_ns } => {
                Event::Congest { receiver: self.receiver(*receiver)?, for_ns: *for_ns }
            }
            Event::Forge(forgery) => Event::Forge(self.forgery(forgery)?),
            Event::UntrueResponse(untrue) => Event::UntrueResponse(self.untrue_response(untrue)?),
            Event::Replay { node, up, frames } => Event::Replay { node: self.node(*node)?, up: *up, frames: *frames },
            Event::Leave { group, receiver } => {
                Event::Leave { group: self.group(*group)?, receiver: self.receiver(*receiver)? }
            }
            Event::Join { group, receiver } => {
                Event::Join { group: self.group(*group)?, receiver: self.receiver(*receiver)? }
            }
            Event::Rehome { node, parent } => Event::Rehome { node: self.node(*node)?, parent: self.node(*parent)? },
        })
    }

    fn forgery(&self, forgery: &Forgery) -> Option<Forgery> {
        let from = match forgery.from {
            Attacker::Receiver(receiver) => Attacker::Receiver(self.receiver(receiver)?),
            Attacker::External(node) => Attacker::External(self.node(node)?),
        };
        let claims = match forgery.claims {
            Claim::Receiver(receiver) => Claim::Receiver(self.receiver(receiver)?),
            Claim::Node(node) => Claim::Node(self.node(node)?),
            Claim::Proxy => Claim::Proxy,
            Claim::Source => Claim::Source,
            Claim::External => Claim::External,
        };
        Some(Forgery { group: self.group(forgery.group)?, from, claims, ..forgery.clone() })
    }

    fn untrue_response(&self, untrue: &UntrueResponse) -> Option<UntrueResponse> {
        let by = match untrue.by {
            Insider::Receiver(receiver) => Insider::Receiver(self.receiver(receiver)?),
            Insider::Link(node) => Insider::Link(self.node(node)?),
        };
        Some(UntrueResponse { group: self.group(untrue.group)?, by, ..*untrue })
    }

    fn events(&self, schedule: &mut Schedule) {
        schedule.events.retain_mut(|timed| match self.event(&timed.event) {
            Some(event) => {
                timed.event = event;
                true
            }
            None => false,
        });
    }
}

impl Schedule {
    /// The schedule without a group; `None` when that was the last one.
    pub(crate) fn without_group(&self, gone: usize) -> Option<Schedule> {
        let mut schedule = self.clone();
        schedule.groups.remove(gone);
        Renumbering { group: moved, gone, ..Renumbering::STAY }.events(&mut schedule);
        (!schedule.groups.is_empty()).then_some(schedule)
    }

    /// The schedule without a receiver and without groups that had no other; `None` when nothing is left.
    pub(crate) fn without_receiver(&self, gone: usize) -> Option<Schedule> {
        let mut schedule = self.clone();
        schedule.receivers.remove(gone);
        for group in &mut schedule.groups {
            group.members = group.members.iter().filter_map(|member| moved(*member, gone)).collect();
        }
        Renumbering { receiver: moved, gone, ..Renumbering::STAY }.events(&mut schedule);
        while let Some(empty) = schedule.groups.iter().position(|group| group.members.is_empty()) {
            schedule = schedule.without_group(empty)?;
        }
        (!schedule.receivers.is_empty()).then_some(schedule)
    }

    /// The schedule without a node, whose children and receivers move to its parent; `None` when the result is invalid.
    pub(crate) fn without_node(&self, gone: usize) -> Option<Schedule> {
        let above = self.nodes[gone].parent?;
        let mut schedule = self.clone();
        for (node, plan) in schedule.nodes.iter_mut().enumerate() {
            if plan.parent == Some(gone) {
                plan.parent = Some(above);
            }
            let parent = plan.parent;
            plan.spares.retain(|spare| *spare != gone && *spare != node && Some(*spare) != parent);
            plan.spares.iter_mut().for_each(|spare| *spare = moved(*spare, gone).unwrap_or(*spare));
            plan.parent = parent.map(|parent| moved(parent, gone).unwrap_or(above));
        }
        schedule.nodes.remove(gone);
        for receiver in &mut schedule.receivers {
            receiver.edge = moved(receiver.edge, gone).unwrap_or(above);
        }
        Renumbering { node: moved, gone, ..Renumbering::STAY }.events(&mut schedule);
        schedule.remove_impossible_rehomings();
        schedule.check().is_ok().then_some(schedule)
    }

    /// Removes re-homing events to a parent that the node cannot have any more.
    pub(crate) fn remove_impossible_rehomings(&mut self) {
        let nodes = &self.nodes;
        self.events.retain(|timed| match &timed.event {
            Event::Rehome { node, parent } => {
                nodes[*node].parent == Some(*parent) || nodes[*node].spares.contains(parent)
            }
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_schedule_is_valid() {
        for seed in 0..150 {
            let schedule = Schedule::from_seed(seed);
            let groups = (0..schedule.groups.len()).filter_map(|group| schedule.without_group(group));
            let receivers = (0..schedule.receivers.len()).filter_map(|receiver| schedule.without_receiver(receiver));
            let nodes = (0..schedule.nodes.len()).filter_map(|node| schedule.without_node(node));
            for smaller in groups.chain(receivers).chain(nodes) {
                assert_eq!(smaller.check(), Ok(()), "seed {seed}");
                assert!(smaller.events.len() <= schedule.events.len());
            }
        }
    }

    #[test]
    fn receivers_after_the_removed_one_are_renumbered() {
        let text = r#"v1:{"seed":1,"nodes":[{"parent":null},{"parent":0},{"parent":1}],"receivers":[2,2,2],
            "link":{"rate_bits_per_s":10000000000,"delay_ns":1,"loss_ppm":0,"duplicate_ppm":0,"reorder_ppm":0,
            "spike_ppm":0,"spike_ns":0,"corrupt_ppm":0},"groups":[{"source":0,"members":[0,2],"start_ns":0,"octets":9,
            "message_octets":9,"first_psn":0,"operation":"Send","policy":{"literal":false,"evict":false,
            "prune_retransmit":false,"lists":"Auto","t_hold_percent":100,"trailing_cnps":false,"min_receivers":1},
            "unlimited_retries":true}],"events":[{"at_ns":1,"event":{"KillReceiver":{"receiver":1}}},
            {"at_ns":2,"event":{"KillReceiver":{"receiver":2}}}],"faults_end_ns":0}"#;
        let schedule = text.parse::<crate::token::ReplayToken>().unwrap().schedule();
        let smaller = schedule.without_receiver(1).unwrap();
        assert_eq!(smaller.groups[0].members, [0, 1]);
        let events: Vec<&Event> = smaller.events.iter().map(|timed| &timed.event).collect();
        assert_eq!(events, [&Event::KillReceiver { receiver: 1 }]);
        let smaller = schedule.without_node(1).unwrap();
        assert_eq!((smaller.nodes.len(), smaller.nodes[1].parent, smaller.receivers[0].edge), (2, Some(0), 1));
        assert_eq!(smaller.without_node(1), None, "receivers cannot hang on node 0");
    }
}
