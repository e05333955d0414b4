//! `srdma group watch`: what happens, until a group is as it is waited for.

mod follow;

use super::{Output, text};
use crate::endpoint;
use anyhow::Result;
use clap::{Args, ValueEnum};
use follow::Follower;
use srdma_api::{Client, ClientError, EVENT_SILENCE, Event, GroupState, News, ProblemType};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Say what happens to groups and nodes, until Ctrl-C.
///
/// Exit code 1: what was waited for did not happen in time.
#[derive(Args)]
pub(super) struct Arguments {
    /// Only of this group, and of nodes.
    #[arg(value_name = "GROUP")]
    group: Option<u32>,
    /// End when the group is so.
    #[arg(long, value_enum, requires = "group")]
    until: Option<Until>,
    /// End after so long.
    #[arg(long, value_name = "TIME", value_parser = endpoint::parse_time)]
    timeout: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Until {
    /// Every node has its part and no change is made.
    Ready,
    /// No node has it any more.
    Closed,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.output.controller.client()?.with_timeout(EVENT_SILENCE);
    let end = arguments.timeout.map(|timeout| Instant::now() + timeout);
    let (sender, events) = mpsc::channel();
    let stream = client.events(None)?;
    let again = client.clone();
    thread::spawn(move || Follower::new(sender).follow(stream, |last| again.events(last), EVENT_SILENCE));
    loop {
        if is_reached(arguments, &client)? {
            return Ok(ExitCode::SUCCESS);
        }
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        // What no event says is looked for once a second.
        match events.recv_timeout(if arguments.until.is_some() { left.min(Duration::from_secs(1)) } else { left }) {
            Ok(Some(event)) if concerns(arguments, &event) => {
                arguments.output.show(&event, |event| format!("{}\n", in_words(event)))?;
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

/// Whether the group is as it is waited for.
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
    match (arguments.group, group_of(&event.news)) {
        (Some(wanted), Some(group)) => wanted == group,
        (None, _) | (_, None) => true,
    }
}

fn group_of(news: &News) -> Option<u32> {
    match news {
        News::GroupCreated { group }
        | News::ReceiverJoining { group, .. }
        | News::GroupChanged { group, .. }
        | News::ChangeGivenUp { group, .. }
        | News::ReceiverGone { group, .. }
        | News::EvictionWanted { group, .. }
        | News::GroupClosed { group } => Some(*group),
        News::NodeUp { .. }
        | News::NodeLost { .. }
        | News::NodeDrained { .. }
        | News::JobPlaced { .. }
        | News::JobRemoved { .. }
        | News::EventsMissed { .. } => None,
    }
}

fn in_words(event: &Event) -> String {
    match &event.news {
        News::GroupCreated { group } => format!("group {group} is {}", text::state(GroupState::Open)),
        News::ReceiverJoining { group, receiver } => format!("group {group}: receiver {receiver} joins"),
        News::GroupChanged { group, epoch } => format!("group {group}: every node has its part of epoch {epoch}"),
        News::ChangeGivenUp { group, reason } => format!("group {group}: a change was given up: {reason}"),
        News::ReceiverGone { group, receiver } => format!("group {group}: receiver {receiver} is gone"),
        News::EvictionWanted { group, receiver, cause, refusal: None } => {
            format!("group {group}: receiver {receiver} is {cause}, and evicted")
        }
        News::EvictionWanted { group, receiver, cause, refusal: Some(refusal) } => {
            format!("group {group}: receiver {receiver} is {cause}, and not evicted: {refusal}")
        }
        News::GroupClosed { group } => format!("group {group} is closed"),
        News::NodeUp { node } => format!("node {node} is up"),
        News::NodeLost { node } => format!("node {node} is lost"),
        News::NodeDrained { node, drained: true } => format!("new trees go round node {node}"),
        News::NodeDrained { node, drained: false } => format!("new trees may go through node {node}"),
        News::JobPlaced { job } => format!("job {job} is placed"),
        News::JobRemoved { job } => format!("job {job} is gone"),
        News::EventsMissed { missed: Some(missed) } => format!("{missed} events are not kept any more and were missed"),
        News::EventsMissed { missed: None } => {
            "the controller was started anew: what happened before it was is not known".to_owned()
        }
    }
}
