//! The whole table of states and messages.

use super::peers::{CLIENT, CLIENT_ID, TERMS, qpn, reply, request, servers, word};
use srdma_cm::{Answered, DisconnectRequest, Exchange, Ids, Mad, Message, Receipt, Reject, Request};
use srdma_testkit::table::table;
use srdma_wire::Instant;

const NOW: Instant = Instant::ZERO;

fn asked(at: usize) -> Request {
    Request { local_id: servers(2)[at].id, ..request() }
}

fn of_server(exchange: &mut Exchange, at: usize, message: Message) -> Result<(), srdma_cm::Refusal> {
    exchange.receive(NOW, servers(2)[at].address, &Mad { transaction_id: 1, message })
}

fn of_client(exchange: &mut Exchange, message: Message) -> Result<(), srdma_cm::Refusal> {
    exchange.receive(NOW, CLIENT, &Mad { transaction_id: 1, message })
}

fn server_reply(at: usize) -> Message {
    Message::Reply(reply(&asked(at), 0x90 + at as u32, 0x100 + at as u32))
}

fn client_ids() -> Ids {
    Ids { local: 7, remote: CLIENT_ID }
}

fn server_ids() -> Ids {
    Ids { local: 0x90, remote: servers(1)[0].id }
}

/// An exchange with two servers after so many steps.
fn state(steps: usize) -> Exchange {
    let mut exchange = Exchange::new(TERMS, &servers(2)).expect("servers");
    let all: [fn(&mut Exchange); 7] = [
        |e| of_client(e, Message::Request(Box::new(request()))).expect("a request"),
        |e| of_server(e, 0, server_reply(0)).expect("a reply"),
        |e| of_server(e, 1, server_reply(1)).expect("a reply"),
        |e| e.group_ready(NOW),
        |e| of_client(e, Message::ReadyToUse(client_ids())).expect("in order"),
        |e| e.close(NOW),
        |e| {
            let drep = |local, at: usize| Message::DisconnectReply(Ids { local, remote: servers(2)[at].id });
            of_client(e, Message::DisconnectReply(client_ids())).expect("in order");
            of_server(e, 0, drep(0x90, 0)).expect("in order");
            of_server(e, 1, drep(0x91, 1)).expect("in order");
        },
    ];
    for step in &all[..steps] {
        step(&mut exchange);
    }
    while exchange.next_action().is_some() {}
    exchange
}

fn cell(steps: usize, event: impl FnOnce(&mut Exchange) -> Result<(), srdma_cm::Refusal>) -> String {
    let mut exchange = state(steps);
    let result = event(&mut exchange);
    let mut words: Vec<String> = std::iter::from_fn(|| exchange.next_action()).map(|action| word(&action)).collect();
    if let Err(refusal) = result {
        words.insert(0, refusal.name().to_owned());
    }
    if words.is_empty() { "-".to_owned() } else { words.join("+") }
}

fn reject(ids: Ids) -> Message {
    let Message::Reject(reject) = super::golden::recorded()[15].mad().message else { panic!("a rejection") };
    Message::Reject(Reject { ids, ..reject })
}

#[test]
fn states_and_messages() {
    let states = ["waiting", "asking", "asking the second", "making", "replying", "connected", "ending", "over"];
    let receipt = |ids, message| Message::Receipt(Receipt { ids, message, service_timeout: 20 });
    let disconnect = |ids, number| Message::DisconnectRequest(DisconnectRequest { ids, remote_qpn: qpn(number) });
    let mut of_clients = vec![["state", "REQ", "RTU", "MRA", "REJ", "DREQ", "DREP", "REP"].map(str::to_owned).to_vec()];
    let mut of_servers = vec![["state", "REP", "MRA", "REJ", "DREQ", "DREP", "RTU", "REQ"].map(str::to_owned).to_vec()];
    let mut of_callers = vec![["state", "ready", "failed", "close"].map(str::to_owned).to_vec()];
    for (steps, name) in states.iter().enumerate() {
        let name = name.replace(' ', "_");
        of_clients.push(vec![
            name.clone(),
            cell(steps, |e| of_client(e, Message::Request(Box::new(request())))),
            cell(steps, |e| of_client(e, Message::ReadyToUse(client_ids()))),
            cell(steps, |e| of_client(e, receipt(client_ids(), Answered::REPLY))),
            cell(steps, |e| of_client(e, reject(client_ids()))),
            cell(steps, |e| of_client(e, disconnect(client_ids(), 0xd0_0000))),
            cell(steps, |e| of_client(e, Message::DisconnectReply(client_ids()))),
            cell(steps, |e| {
                let mut reply = reply(&request(), 7, 0x77);
                reply.ids = client_ids();
                of_client(e, Message::Reply(reply))
            }),
        ]);
        of_servers.push(vec![
            name.clone(),
            cell(steps, |e| of_server(e, 0, server_reply(0))),
            cell(steps, |e| of_server(e, 0, receipt(server_ids(), Answered::REQUEST))),
            cell(steps, |e| of_server(e, 0, reject(server_ids()))),
            cell(steps, |e| of_server(e, 0, disconnect(server_ids(), 0xd0_0000))),
            cell(steps, |e| of_server(e, 0, Message::DisconnectReply(server_ids()))),
            cell(steps, |e| of_server(e, 0, Message::ReadyToUse(server_ids()))),
            cell(steps, |e| of_server(e, 0, Message::Request(Box::new(request())))),
        ]);
        let call = |call: fn(&mut Exchange)| {
            cell(steps, |e| {
                call(e);
                Ok(())
            })
        };
        of_callers.push(vec![
            name,
            call(|e| e.group_ready(NOW)),
            call(|e| e.group_failed(NOW, "no pool")),
            call(|e| e.close(NOW)),
        ]);
    }
    insta::assert_snapshot!("client", table(&of_clients));
    insta::assert_snapshot!("server", table(&of_servers));
    insta::assert_snapshot!("caller", table(&of_callers));
}
