//! The whole table of states and events.

use super::recording::{Recording, group, of_server};
use srdma_perftest::{Action, Conversation, Party};
use srdma_testkit::table::table;

/// A conversation with two servers: `client` messages of the client, `servers` answered by all, and what is to be done
/// is done, but for the last thing if `is_held`.
fn state(client: usize, servers: usize, is_held: bool) -> Conversation {
    let recording = Recording::read("write");
    let mut conversation = Conversation::new(2).expect("two servers");
    for number in 0..client {
        conversation.receive(Party::Client, &recording.client[number]).expect("it is in turn");
        drain(&mut conversation, is_held && number + 1 == client && servers < client);
        if number < servers {
            for at in 0..2 {
                conversation.receive(Party::Server(at), &of_server(&recording.server[number], at)).expect("in turn");
            }
            drain(&mut conversation, is_held && number + 1 == client);
        }
    }
    conversation
}

fn drain(conversation: &mut Conversation, is_held: bool) {
    while let Some(action) = conversation.next_action() {
        match action {
            Action::CreateGroup(_) if !is_held => conversation.group_created(group()),
            Action::BeginGroup(_) if !is_held => conversation.group_ready(),
            Action::CreateGroup(_) | Action::BeginGroup(_) => {}
            Action::ToClient(_) | Action::ToServer(..) | Action::Finish(_) => {}
        }
    }
}

fn cell(
    mut conversation: Conversation,
    event: impl FnOnce(&mut Conversation) -> Result<(), srdma_perftest::Refusal>,
) -> String {
    if let Err(refusal) = event(&mut conversation) {
        return format!("{:?}", refusal.problem);
    }
    let mut words = Vec::new();
    while let Some(action) = conversation.next_action() {
        words.push(match action {
            Action::ToClient(_) => "answer",
            Action::ToServer(0, _) => "ask",
            Action::ToServer(..) => continue,
            Action::CreateGroup(_) => "create",
            Action::BeginGroup(_) => "begin",
            Action::Finish(_) => "finish",
        });
    }
    if words.is_empty() { "-".to_owned() } else { words.join("+") }
}

#[test]
fn states_and_events() {
    let recording = Recording::read("write");
    let (key, figure) = (recording.client[4].clone(), recording.client[8].clone());
    let server_key = recording.server[4].clone();
    let states: [(&str, usize, usize, bool); 14] = [
        ("version", 0, 0, false),
        ("version, servers", 1, 0, false),
        ("buffer size", 1, 1, false),
        ("path MTU, servers", 4, 3, false),
        ("key", 4, 4, false),
        ("creating", 5, 4, true),
        ("key, servers", 5, 4, false),
        ("joining", 5, 5, true),
        ("barrier", 5, 5, false),
        ("barrier, servers", 6, 5, false),
        ("behind the run", 8, 8, false),
        ("figures", 9, 9, false),
        ("last barrier", 13, 13, false),
        ("end", 14, 14, false),
    ];
    let mut rows = vec![
        [
            "state",
            "client's key",
            "figure",
            "done",
            "client ends",
            "server's key",
            "server's done",
            "server ends",
            "created",
            "ready",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for (name, client, servers, is_held) in states {
        let of = || state(client, servers, is_held);
        rows.push(vec![
            name.replace(' ', "_"),
            cell(of(), |c| c.receive(Party::Client, &key)),
            cell(of(), |c| c.receive(Party::Client, &figure)),
            cell(of(), |c| c.receive(Party::Client, b"done\0")),
            cell(of(), |c| c.ended(Party::Client)),
            cell(of(), |c| {
                c.receive(Party::Server(0), &server_key)?;
                c.receive(Party::Server(1), &of_server(&server_key, 1))
            }),
            cell(of(), |c| c.receive(Party::Server(0), b"done\0")),
            cell(of(), |c| c.ended(Party::Server(0))),
            cell(of(), |c| {
                c.group_created(group());
                Ok(())
            }),
            cell(of(), |c| {
                c.group_ready();
                Ok(())
            }),
        ]);
    }
    insta::assert_snapshot!(table(&rows));
}
