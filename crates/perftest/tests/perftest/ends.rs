//! Parties whose connections end, at each message and at each octet of it.

use super::recording::{Recording, group, of_server};
use srdma_perftest::{Action, Conversation, Party, Problem, Refusal, Step};

const SERVERS: usize = 3;

/// A conversation up to the message of a party, of which only so many octets come.
struct Broken<'a> {
    recording: &'a Recording,
    party: Party,
    message: usize,
    octets: usize,
    said: [usize; SERVERS + 1],
}

impl Broken<'_> {
    /// Whether the party has ended.
    fn says(&mut self, conversation: &mut Conversation, party: Party) -> Result<bool, Refusal> {
        let (messages, place) = match party {
            Party::Client => (&self.recording.client, 0),
            Party::Server(at) => (&self.recording.server, at + 1),
        };
        let number = self.said[place];
        let Some(message) = messages.get(number) else { return Ok(false) };
        self.said[place] += 1;
        let message = match party {
            Party::Client => message.clone(),
            Party::Server(at) => of_server(message, at),
        };
        if party == self.party && number == self.message {
            conversation.receive(party, &message[..self.octets])?;
            return conversation.ended(party).map(|()| true);
        }
        conversation.receive(party, &message).map(|()| false)
    }

    fn run(&mut self) -> Result<(), Refusal> {
        let conversation = &mut Conversation::new(SERVERS).expect("some servers");
        if self.says(conversation, Party::Client)? {
            return Ok(());
        }
        while let Some(action) = conversation.next_action() {
            let has_ended = match action {
                Action::ToClient(_) => self.says(conversation, Party::Client)?,
                Action::ToServer(at, _) => self.says(conversation, Party::Server(at))?,
                Action::CreateGroup(_) => {
                    conversation.group_created(group());
                    false
                }
                Action::BeginGroup(_) => {
                    conversation.group_ready();
                    false
                }
                Action::Finish(_) => false,
            };
            if has_ended {
                assert_eq!(conversation.step(), Step::Done);
            }
        }
        Ok(())
    }
}

/// The step of a message of a WRITE.
fn step(message: usize) -> Step {
    match message {
        0 => Step::Version,
        1 => Step::BufferSize,
        2 => Step::CacheLine,
        3 => Step::PathMtu,
        4 => Step::Key,
        // The first figure has one of the first two octets behind the barriers before it is known to be one.
        5..=7 | 13 => Step::Barrier,
        8..=12 => Step::Figures,
        _ => Step::Done,
    }
}

#[test]
fn each_end_is_an_end_of_the_handshake_that_names_party_and_step() {
    let recording = Recording::read("write");
    assert_eq!((recording.client.len(), recording.server.len()), (15, 15));
    for party in [Party::Client, Party::Server(0), Party::Server(SERVERS - 1)] {
        for message in 0..15 {
            let length = recording.client[message].len();
            for octets in 0..=length {
                let mut broken = Broken { recording: &recording, party, message, octets, said: [0; SERVERS + 1] };
                let result = broken.run();
                let is_last = message == 14 && octets == length;
                if is_last {
                    assert_eq!(result, Ok(()), "{party:?}");
                    continue;
                }
                let refusal = result.expect_err("it has ended");
                let problem = if octets == 0 || octets == length { Problem::Ended } else { Problem::EndedInside };
                assert_eq!((refusal.party, refusal.problem), (party, problem), "{message} {octets}");
                let expected = match (party, message, octets) {
                    // The kind of the client's message is known from two octets, its step from the whole.
                    (Party::Client, 8 | 14, octets) if octets < length => Step::Barrier,
                    (Party::Client, 13, _) | (_, 5..=7, _) => Step::Barrier,
                    // All have answered the last one that was waited for, and the group is not ready yet.
                    (_, 4, _) => step(message),
                    (Party::Server(2), message, octets) if octets == length => next(message),
                    (_, message, _) => step(message),
                };
                assert_eq!(refusal.step, expected, "{party:?} {message} {octets}");
            }
        }
    }
}

fn next(message: usize) -> Step {
    match message {
        // What comes next is known when it comes.
        7 | 12 | 13 => Step::Barrier,
        message => step(message + 1),
    }
}
