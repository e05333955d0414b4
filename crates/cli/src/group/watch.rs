//! `srdma group watch`: prints events until a group has a state.

mod follow;

use super::{Output, text};
use crate::endpoint;
use anyhow::Result;
use clap::{Args, ValueEnum};
use follow::Follower;
use srdma_api::{Client, ClientError, EVENT_TIMEOUT, Event, EventKind, GroupState, ProblemType};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Print events of groups and nodes until Ctrl-C.
///
/// Exit code 1: timed out.
#[derive(Args)]
pub(super) struct Arguments {
    /// Only events of this group and of nodes.
    #[arg(value_name = "GROUP")]
    group: Option<u32>,
    /// End when the group has this state.
    #[arg(long, value_enum, requires = "group")]
    until: Option<Until>,
    /// Timeout.
    #[arg(long, value_name = "TIME", value_parser = endpoint::parse_time)]
    timeout: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Until {
    /// All nodes have the group, and no change is in progress.
    Ready,
    /// No node has the group.
    Closed,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.output.controller.client()?.with_timeout(EVENT_TIMEOUT);
    let end = arguments.timeout.map(|timeout| Instant::now() + timeout);
    let (sender, events) = mpsc::channel();
    let stream = client.events(None)?;
    let again = client.clone();
    thread::spawn(move || Follower::new(sender).follow(stream, |last| again.events(last), EVENT_TIMEOUT));
    loop {
        if is_reached(arguments, &client)? {
            return Ok(ExitCode::SUCCESS);
        }
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        // States without an event are polled once a second.
        match events.recv_timeout(if arguments.until.is_some() { left.min(Duration::from_secs(1)) } else { left }) {
            Ok(Some(event)) if concerns(arguments, &event) => {
                arguments.output.show(&event, |event| format!("{}\n", describe(event)))?;
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                let code = if arguments.until.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
                return Ok(code);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// Whether the group has the state that is waited for.
fn is_reached(arguments: &Arguments, client: &Client) -> Result<bool> {
    let (Some(group), Some(until)) = (arguments.group, arguments.until) else { return Ok(false) };
    let state = match client.group(group) {
        Ok(group) => group.summary.state,
        Err(ClientError::Unreachable { .. }) => return Ok(false),
        Err(error) if error.is(ProblemType::UnknownGroup) => GroupState::Closed,
        Err(error) => return Err(error.into()),
    };
    Ok(match until {
        Until::Ready => state == GroupState::Ready,
        Until::Closed => state == GroupState::Closed,
    })
}

fn concerns(arguments: &Arguments, event: &Event) -> bool {
    match (arguments.group, group_of(&event.kind)) {
        (Some(wanted), Some(group)) => wanted == group,
        (None, _) | (_, None) => true,
    }
}

fn group_of(kind: &EventKind) -> Option<u32> {
    match kind {
        EventKind::GroupCreated { group }
        | EventKind::ReceiverJoining { group, .. }
        | EventKind::GroupChanged { group, .. }
        | EventKind::ChangeAborted { group, .. }
        | EventKind::ReceiverRemoved { group, .. }
        | EventKind::EvictionRequested { group, .. }
        | EventKind::GroupClosed { group } => Some(*group),
        EventKind::NodeUp { .. }
        | EventKind::NodeDown { .. }
        | EventKind::NodeDrained { .. }
        | EventKind::NodeUnconfirmed { .. }
        | EventKind::NodeConfirmed { .. }
        | EventKind::NodeRenamed { .. }
        | EventKind::NodeRemoved { .. }
        | EventKind::JobPlaced { .. }
        | EventKind::JobRemoved { .. }
        | EventKind::EventsMissed { .. } => None,
    }
}

fn describe(event: &Event) -> String {
    match &event.kind {
        EventKind::GroupCreated { group } => format!("group {group} is {}", text::state(GroupState::Open)),
        EventKind::ReceiverJoining { group, receiver } => format!("group {group}: receiver {receiver} joins"),
        EventKind::GroupChanged { group, epoch } => format!("group {group}: all nodes have epoch {epoch}"),
        EventKind::ChangeAborted { group, reason } => format!("group {group}: change aborted: {reason}"),
        EventKind::ReceiverRemoved { group, receiver } => format!("group {group}: receiver {receiver} was removed"),
        EventKind::EvictionRequested { group, receiver, cause, refusal: None } => {
            format!("group {group}: receiver {receiver} is {cause}: evicted")
        }
        EventKind::EvictionRequested { group, receiver, cause, refusal: Some(refusal) } => {
            format!("group {group}: receiver {receiver} is {cause}: eviction refused: {refusal}")
        }
        EventKind::GroupClosed { group } => format!("group {group} is closed"),
        EventKind::NodeUp { node } => format!("node {node} is up"),
        EventKind::NodeDown { node } => format!("node {node} is down"),
        EventKind::NodeDrained { node, drained: true } => format!("node {node} is drained"),
        EventKind::NodeDrained { node, drained: false } => format!("node {node} is no longer drained"),
        EventKind::NodeUnconfirmed { node } => format!("node {node} has registered what is not confirmed"),
        EventKind::NodeConfirmed { node } => format!("node {node} is confirmed"),
        EventKind::NodeRenamed { node, name } => format!("node {node} is renamed to {name}"),
        EventKind::NodeRemoved { node } => format!("node {node} is removed"),
        EventKind::JobPlaced { job } => format!("job {job} was placed"),
        EventKind::JobRemoved { job } => format!("job {job} was removed"),
        EventKind::EventsMissed { missed: Some(missed) } => {
            format!("{missed} events were missed: they are no longer kept")
        }
        EventKind::EventsMissed { missed: None } => {
            "the controller was restarted: earlier events are not known".to_owned()
        }
    }
}
