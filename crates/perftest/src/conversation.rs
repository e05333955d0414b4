//! The state of the handshake.
//!
//! ```text
//!   turn:   Client ── a message ──→ Servers ── all have answered ──→ Client … Over
//!                 └── its key ──→ Creating ── a group ──→ Servers ──→ Joining ── it is ready ──→ Client
//! ```

use crate::action::{Action, GroupEnd, Outcome, Receiver, Source};
use crate::inbox::Inbox;
use crate::key::Key;
use crate::message::{DONE, FIGURES, Figures, Kind, Operation, Version, emit_path_mtu};
use crate::refusal::{Party, Problem, Refusal, Step};
use crate::value::Value;
use srdma_wire::PathMtu;
use std::collections::{BTreeSet, VecDeque};

/// The most servers of a client.
pub const MOST_SERVERS: usize = 256;
/// A SEND over all sizes has two barriers for each of 23, and three more.
const MOST_BARRIERS: u32 = 64;
/// Barriers before the figures of a WRITE, and before the end of a SEND.
const BARRIERS: (u32, u32) = (3, 4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Client,
    Servers,
    Creating,
    Joining,
    Over,
}

#[derive(Debug, Default)]
struct Server {
    inbox: Inbox,
    /// Its answer in this step.
    answer: Option<Value>,
    key: Option<Key>,
    /// Its last message has come.
    is_over: bool,
}

/// The handshake of one client and its servers.
#[derive(Debug)]
pub struct Conversation {
    step: Step,
    turn: Turn,
    client: Inbox,
    /// The client's message in this step.
    asked: Option<Value>,
    client_key: Option<Key>,
    /// The client's last message has come.
    client_is_over: bool,
    servers: Vec<Server>,
    path_mtu: Option<PathMtu>,
    group: Option<GroupEnd>,
    /// Keys that have come again.
    barriers: u32,
    figures: Vec<[u8; 8]>,
    /// Barriers when the figures began.
    barriers_before_figures: u32,
    actions: VecDeque<Action>,
}

impl Conversation {
    /// A handshake with so many servers, from 1 to [`MOST_SERVERS`].
    pub fn new(servers: usize) -> Option<Self> {
        (1..=MOST_SERVERS).contains(&servers).then(|| Conversation {
            step: Step::Version,
            turn: Turn::Client,
            client: Inbox::default(),
            asked: None,
            client_key: None,
            client_is_over: false,
            servers: (0..servers).map(|_| Server::default()).collect(),
            path_mtu: None,
            group: None,
            barriers: 0,
            figures: Vec::new(),
            barriers_before_figures: 0,
            actions: VecDeque::new(),
        })
    }

    /// The step.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Whether the next message of the client may be the one behind the run.
    pub fn may_run(&self) -> bool {
        self.turn == Turn::Client && self.step == Step::Barrier && self.may_have_run()
    }

    /// Whether a test may have begun to run.
    pub fn may_have_run(&self) -> bool {
        self.barriers + 1 >= BARRIERS.0
    }

    /// The parties whose messages are waited for.
    pub fn awaited(&self) -> Vec<Party> {
        match self.turn {
            Turn::Client => vec![Party::Client],
            Turn::Servers => {
                let servers = self.servers.iter().enumerate();
                servers.filter(|(_, server)| server.answer.is_none()).map(|(at, _)| Party::Server(at)).collect()
            }
            Turn::Creating | Turn::Joining | Turn::Over => Vec::new(),
        }
    }

    /// What is to be done next; to be called until there is nothing more.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Takes octets of a party.
    ///
    /// # Errors
    ///
    /// What is wrong with them. Then the handshake is over.
    pub fn receive(&mut self, party: Party, octets: &[u8]) -> Result<(), Refusal> {
        if self.turn == Turn::Over || octets.is_empty() {
            return Ok(());
        }
        let received = match party {
            Party::Client => self.of_client(octets),
            Party::Server(at) => self.of_server(at, octets),
        };
        self.refused(received)
    }

    /// A party's connection has ended.
    ///
    /// # Errors
    ///
    /// If it was not at its end. Then the handshake is over.
    pub fn ended(&mut self, party: Party) -> Result<(), Refusal> {
        if self.turn == Turn::Over {
            return Ok(());
        }
        let (is_over, octets) = match party {
            Party::Client => (self.client_is_over, self.client.octets()),
            Party::Server(at) => match self.servers.get(at) {
                Some(server) => (server.is_over || server.inbox.octets() == DONE, server.inbox.octets()),
                None => return Ok(()),
            },
        };
        match (is_over, octets.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => self.refused(Err((party, Problem::Ended))),
            (false, false) => self.refused(Err((party, Problem::EndedInside))),
        }
    }

    /// The group was created.
    pub fn group_created(&mut self, group: GroupEnd) {
        let (Turn::Creating, Some(client)) = (self.turn, self.client_key) else { return };
        self.group = Some(group);
        let octets = Key { gid: group.proxy, qpn: group.designated_qpn, ..client }.emit();
        self.ask(Value::Key(client), &octets);
    }

    /// The group has its receivers, and the source may send.
    pub fn group_ready(&mut self) {
        if let (Turn::Joining, Some(key)) = (self.turn, self.key_of_group()) {
            self.answer(key.emit(), Step::Barrier);
        }
    }

    fn refused(&mut self, result: Result<(), (Party, Problem)>) -> Result<(), Refusal> {
        result.map_err(|(party, problem)| {
            self.turn = Turn::Over;
            self.actions.clear();
            Refusal { party, step: self.step, problem }
        })
    }

    fn of_client(&mut self, octets: &[u8]) -> Result<(), (Party, Problem)> {
        let of_client = |problem| (Party::Client, problem);
        if self.turn != Turn::Client {
            return Err(of_client(Problem::OutOfTurn));
        }
        self.client.push(octets).map_err(of_client)?;
        let Some(kind) = self.client_kind().map_err(of_client)? else { return Ok(()) };
        let Some(message) = self.client.take(kind).map_err(of_client)? else { return Ok(()) };
        if !self.client.is_empty() {
            return Err(of_client(Problem::OutOfTurn));
        }
        let value = Value::parse(kind, &message).map_err(of_client)?;
        self.client_says(value, &message)
    }

    /// The kind of the client's next message; `None`: that is not known yet.
    fn client_kind(&mut self) -> Result<Option<Kind>, Problem> {
        let kind = match self.step {
            Step::Version => Kind::Version,
            Step::BufferSize | Step::CacheLine => Kind::Size,
            Step::PathMtu => Kind::PathMtu,
            Step::Key => Kind::Key,
            Step::Figures => Kind::Figure,
            Step::Done => Kind::Done,
            Step::Barrier => {
                let Some(kind) = Kind::of_beginning(self.client.octets())? else { return Ok(None) };
                let has_figures = !self.figures.is_empty();
                let is_last = has_figures && self.barriers > self.barriers_before_figures;
                let is_in_order = match kind {
                    Kind::Key => !is_last,
                    Kind::Figure => !has_figures && self.barriers >= BARRIERS.0,
                    Kind::Done => is_last || !has_figures && self.barriers >= BARRIERS.1,
                    Kind::Version | Kind::Size | Kind::PathMtu => false,
                };
                if !is_in_order {
                    return Err(Problem::OutOfOrder);
                }
                kind
            }
        };
        Ok(Some(kind))
    }

    fn client_says(&mut self, value: Value, message: &[u8]) -> Result<(), (Party, Problem)> {
        let of_client = |problem| (Party::Client, problem);
        match (value, self.path_mtu, self.group, self.client_key) {
            (Value::Key(key), Some(path_mtu), None, None) => {
                key.check().map_err(of_client)?;
                self.client_key = Some(key);
                self.turn = Turn::Creating;
                let source = Source { address: key.gid, qpn: key.qpn, initial_psn: key.psn, path_mtu };
                self.actions.push_back(Action::CreateGroup(source));
            }
            (Value::Key(key), _, Some(group), Some(first)) => {
                first.difference(&key).map_or(Ok(()), |problem| Err(of_client(problem)))?;
                if self.barriers == MOST_BARRIERS {
                    return Err(of_client(Problem::TooManyBarriers));
                }
                self.barriers += 1;
                let octets = Key { gid: group.proxy, qpn: group.designated_qpn, ..key }.emit();
                self.none_is_done()?;
                self.ask(value, &octets);
            }
            // The key is the message behind the path MTU, and a group the one behind the key.
            (Value::Key(_), ..) => return Err(of_client(Problem::OutOfOrder)),
            (Value::Figure(figure), ..) => {
                if self.figures.is_empty() {
                    self.barriers_before_figures = self.barriers;
                }
                self.step = Step::Figures;
                self.figures.push(figure);
                self.none_is_done()?;
                self.ask(value, message);
            }
            (Value::Done, ..) => {
                self.step = Step::Done;
                self.client_is_over = true;
                self.ask(value, message);
                for at in 0..self.servers.len() {
                    self.server_answers(at)?;
                }
                return self.combine_if_all();
            }
            (Value::Version(_) | Value::Size(_) | Value::PathMtu(_), ..) => self.ask(value, message),
        }
        Ok(())
    }

    /// No server has sent its last message before the client.
    fn none_is_done(&self) -> Result<(), (Party, Problem)> {
        match self.servers.iter().position(|server| !server.inbox.is_empty()) {
            Some(at) => Err((Party::Server(at), Problem::OutOfOrder)),
            None => Ok(()),
        }
    }

    /// Sends a message to all servers.
    fn ask(&mut self, value: Value, octets: &[u8]) {
        self.asked = Some(value);
        self.turn = Turn::Servers;
        for (at, server) in self.servers.iter_mut().enumerate() {
            server.answer = None;
            self.actions.push_back(Action::ToServer(at, octets.to_vec()));
        }
    }

    /// Sends the client the answer.
    fn answer(&mut self, octets: Vec<u8>, next: Step) {
        self.actions.push_back(Action::ToClient(octets));
        (self.step, self.turn) = (next, Turn::Client);
    }

    fn of_server(&mut self, at: usize, octets: &[u8]) -> Result<(), (Party, Problem)> {
        let of_server = |problem| (Party::Server(at), problem);
        let Some(server) = self.servers.get_mut(at) else { return Ok(()) };
        if server.is_over {
            return Err(of_server(Problem::OutOfTurn));
        }
        server.inbox.push(octets).map_err(of_server)?;
        self.server_answers(at)?;
        self.combine_if_all()
    }

    /// Takes a server's answer, if it is asked and the answer has come.
    fn server_answers(&mut self, at: usize) -> Result<(), (Party, Problem)> {
        let of_server = |problem| (Party::Server(at), problem);
        let (Some(server), step) = (self.servers.get_mut(at), self.step) else { return Ok(()) };
        if self.turn == Turn::Servers && server.answer.is_none() {
            let kind = match step {
                Step::Version => Kind::Version,
                Step::BufferSize | Step::CacheLine => Kind::Size,
                Step::PathMtu => Kind::PathMtu,
                Step::Key | Step::Barrier => Kind::Key,
                Step::Figures => Kind::Figure,
                Step::Done => Kind::Done,
            };
            let Some(message) = server.inbox.take(kind).map_err(of_server)? else { return Ok(()) };
            let value = Value::parse(kind, &message).map_err(of_server)?;
            server.answer = Some(value);
            server.is_over = step == Step::Done;
            if let Value::Key(key) = value {
                match server.key {
                    None => {
                        key.check().map_err(of_server)?;
                        server.key = Some(key);
                    }
                    Some(first) => first.difference(&key).map_or(Ok(()), |problem| Err(of_server(problem)))?,
                }
            }
        }
        // A server sends its last message at once behind its last key, of which it alone knows that it is the last one.
        let may_be_done = step == Step::Barrier && DONE.starts_with(server.inbox.octets());
        if server.inbox.is_empty() || may_be_done { Ok(()) } else { Err(of_server(Problem::OutOfTurn)) }
    }

    /// Answers the client when all servers have answered.
    fn combine_if_all(&mut self) -> Result<(), (Party, Problem)> {
        if self.turn != Turn::Servers {
            return Ok(());
        }
        let Some(answers) = self.servers.iter().map(|server| server.answer).collect::<Option<Vec<Value>>>() else {
            return Ok(());
        };
        let Some(asked) = self.asked else { return Ok(()) };
        match (self.step, asked) {
            (Step::Version, Value::Version(_)) => {
                let versions = answers.iter().filter_map(|answer| match answer {
                    Value::Version(version) => Some(*version),
                    _ => None,
                });
                let lowest = versions.min().unwrap_or(Version::OLDEST);
                self.answer(lowest.emit(), Step::BufferSize);
            }
            (Step::BufferSize, Value::Size(own)) => {
                let sizes = sizes(&answers).map(|size| size.max(own));
                let size = same(sizes)
                    .map_err(|(at, size, first)| (Party::Server(at), Problem::OtherBufferSize(size, first)))?;
                self.answer(size.to_be_bytes().to_vec(), Step::CacheLine);
            }
            (Step::CacheLine, Value::Size(own)) => {
                let size = sizes(&answers).fold(own, u32::max);
                self.answer(size.to_be_bytes().to_vec(), Step::PathMtu);
            }
            (Step::PathMtu, Value::PathMtu(own)) => {
                let octets = answers.iter().filter_map(|answer| match answer {
                    Value::PathMtu(path_mtu) => Some(path_mtu.octets().min(own.octets())),
                    _ => None,
                });
                let octets =
                    same(octets).map_err(|(at, mtu, first)| (Party::Server(at), Problem::OtherPathMtu(mtu, first)))?;
                let path_mtu = PathMtu::from_octets(octets).unwrap_or(own);
                self.path_mtu = Some(path_mtu);
                self.answer(emit_path_mtu(path_mtu), Step::Key);
            }
            (Step::Key, Value::Key(own)) => {
                let receivers = self.receivers(own)?;
                self.turn = Turn::Joining;
                self.actions.push_back(Action::BeginGroup(receivers));
            }
            (Step::Barrier, Value::Key(_)) => {
                if let Some(key) = self.key_of_group() {
                    self.answer(key.emit(), Step::Barrier);
                }
            }
            (Step::Figures, Value::Figure(_)) => {
                let next = if self.figures.len() < FIGURES { Step::Figures } else { Step::Barrier };
                // A server that only receives answers with whatever its memory has there.
                self.answer(vec![0; Kind::Figure.octets()], next);
            }
            (Step::Done, Value::Done) => {
                self.turn = Turn::Over;
                self.actions.push_back(Action::Finish(self.outcome()));
            }
            (Step::Version | Step::BufferSize | Step::CacheLine | Step::PathMtu, _)
            | (Step::Key | Step::Barrier | Step::Figures | Step::Done, _) => {
                return Err((Party::Client, Problem::OutOfOrder));
            }
        }
        Ok(())
    }

    /// The servers as receivers, each with an address of its own.
    fn receivers(&self, source: Key) -> Result<Vec<Receiver>, (Party, Problem)> {
        let mut gids = BTreeSet::from([source.gid]);
        let keys = self.servers.iter().enumerate().filter_map(|(at, server)| Some((at, server.key?)));
        keys.map(|(at, key)| {
            if !gids.insert(key.gid) {
                return Err((Party::Server(at), Problem::SameGid(key.gid)));
            }
            let Key { qpn, rkey, virtual_address, gid: address, .. } = key;
            Ok(Receiver { address, qpn, rkey, virtual_address })
        })
        .collect()
    }

    /// The group as a server's key.
    fn key_of_group(&self) -> Option<Key> {
        let GroupEnd { proxy: gid, designated_qpn: qpn, rkey, virtual_address } = self.group?;
        Some(Key { gid, qpn, rkey, virtual_address, ..self.servers.first()?.key? })
    }

    fn outcome(&self) -> Outcome {
        match <&[[u8; 8]; FIGURES]>::try_from(self.figures.as_slice()) {
            Ok(figures) => Outcome { operation: Operation::Write, figures: Figures::parse(figures) },
            Err(_) => Outcome { operation: Operation::Send, figures: None },
        }
    }
}

fn sizes(answers: &[Value]) -> impl Iterator<Item = u32> {
    answers.iter().filter_map(|answer| match answer {
        Value::Size(size) => Some(*size),
        _ => None,
    })
}

/// The number that all servers have; else the first one with another, its number, and that of the first.
fn same(numbers: impl Iterator<Item = u32>) -> Result<u32, (usize, u32, u32)> {
    let mut first = None;
    for (at, number) in numbers.enumerate() {
        let first = *first.get_or_insert(number);
        if number != first {
            return Err((at, number, first));
        }
    }
    Ok(first.unwrap_or_default())
}
