//! Recorded conversations, and what plays their parties.

use srdma_perftest::{Action, Conversation, GroupEnd, Outcome, Party, Receiver, Refusal, Source};
use srdma_wire::Qpn;
use std::net::Ipv6Addr;
use std::path::Path;

/// Messages of one client and one server, in the order in which they were recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recording {
    pub(crate) client: Vec<Vec<u8>>,
    pub(crate) server: Vec<Vec<u8>>,
}

impl Recording {
    pub(crate) fn read(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perftest");
        let text = std::fs::read_to_string(directory.join(name).with_extension("txt")).expect("a recording");
        let mut recording = Recording { client: Vec::new(), server: Vec::new() };
        for line in text.lines() {
            let (party, octets) = line.split_once(' ').expect("two words");
            let octets = hex::decode(octets).expect("hexadecimal digits");
            match party {
                "client" => recording.client.push(octets),
                "server" => recording.server.push(octets),
                other => panic!("{other} is no party"),
            }
        }
        recording
    }
}

/// The group of the tests.
pub(crate) fn group() -> GroupEnd {
    GroupEnd {
        proxy: "2001:db8:cc::1".parse().expect("an address"),
        designated_qpn: Qpn::new(0xd0_0001).expect("24 bits"),
        rkey: 0x1234_5678,
        virtual_address: 0x1_0000,
    }
}

/// The key of the recorded server, as if it were another one: with another GID, queue pair and R_Key.
pub(crate) fn of_server(message: &[u8], at: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(message);
    if message.len() != 108 || at == 0 {
        return message.to_vec();
    }
    let mut fields: Vec<String> = text.split(':').map(str::to_owned).collect();
    fields[2] = format!("{:06x}", 0x20 + at);
    fields[4] = format!("{:08x}", 0x100 + at);
    fields[21] = format!("{:02x}", 0x10 + at);
    fields.join(":").into_bytes()
}

/// All that a conversation did.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Transcript {
    pub(crate) to_client: Vec<Vec<u8>>,
    pub(crate) to_servers: Vec<Vec<Vec<u8>>>,
    pub(crate) source: Option<Source>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) outcome: Option<Outcome>,
}

/// Carries out a conversation of recorded parties. Octets come in pieces of `piece`, and pass through `change`.
pub(crate) fn play(
    recording: &Recording,
    servers: usize,
    piece: usize,
    change: impl FnMut(Party, usize, Vec<u8>) -> Vec<u8>,
) -> (Result<(), Refusal>, Transcript) {
    let mut player = Player { recording, piece, change, said: vec![0; servers + 1], transcript: Transcript::default() };
    player.transcript.to_servers = vec![Vec::new(); servers];
    let mut conversation = Conversation::new(servers).expect("some servers");
    let result = player.run(&mut conversation);
    (result, player.transcript)
}

struct Player<'a, F> {
    recording: &'a Recording,
    piece: usize,
    change: F,
    /// Messages that the client and each server have sent.
    said: Vec<usize>,
    transcript: Transcript,
}

impl<F: FnMut(Party, usize, Vec<u8>) -> Vec<u8>> Player<'_, F> {
    fn run(&mut self, conversation: &mut Conversation) -> Result<(), Refusal> {
        self.says(conversation, Party::Client)?;
        while let Some(action) = conversation.next_action() {
            match action {
                Action::ToClient(octets) => {
                    self.transcript.to_client.push(octets);
                    self.says(conversation, Party::Client)?;
                }
                Action::ToServer(at, octets) => {
                    self.transcript.to_servers[at].push(octets);
                    self.says(conversation, Party::Server(at))?;
                    // The message behind the last answer comes at once.
                    if self.said[at + 1] + 1 == self.recording.server.len() {
                        self.says(conversation, Party::Server(at))?;
                        conversation.ended(Party::Server(at))?;
                    }
                }
                Action::CreateGroup(source) => {
                    self.transcript.source = Some(source);
                    conversation.group_created(group());
                }
                Action::BeginGroup(receivers) => {
                    self.transcript.receivers = receivers;
                    conversation.group_ready();
                }
                Action::Finish(outcome) => self.transcript.outcome = Some(outcome),
            }
        }
        Ok(())
    }

    fn says(&mut self, conversation: &mut Conversation, party: Party) -> Result<(), Refusal> {
        let (messages, place) = match party {
            Party::Client => (&self.recording.client, 0),
            Party::Server(at) => (&self.recording.server, at + 1),
        };
        let number = self.said[place];
        let Some(message) = messages.get(number) else { return Ok(()) };
        self.said[place] += 1;
        let message = match party {
            Party::Client => message.clone(),
            Party::Server(at) => of_server(message, at),
        };
        let message = (self.change)(party, number, message);
        message.chunks(self.piece).try_for_each(|piece| conversation.receive(party, piece))
    }
}

pub(crate) fn unchanged(_: Party, _: usize, message: Vec<u8>) -> Vec<u8> {
    message
}

pub(crate) fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}
