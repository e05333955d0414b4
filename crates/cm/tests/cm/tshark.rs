//! What an exchange sends, as tshark reads it.

use super::network::{Faults, Network};
use super::peers::{CLIENT, PROXY, TERMS, qpn, reply, request, servers};
use srdma_capture::Writer;
use srdma_cm::{Action, Exchange, Flow, Ids, Mad, Message, PAYLOAD_LEN};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::{Instant, Ipv6, NextHeader, Psn, Udp};
use std::fs::File;
use std::io::BufWriter;
use std::process::Command;
use zerocopy::IntoBytes;

/// The messages of an exchange with one server: all that it sends.
fn sent() -> Vec<(std::net::Ipv6Addr, Mad)> {
    let now = Instant::ZERO;
    let mut exchange = Exchange::new(TERMS, &servers(1)).expect("a server");
    let mut sent = Vec::new();
    let server = servers(1)[0];
    let receive = |exchange: &mut Exchange, from, message| {
        exchange.receive(now, from, &Mad { transaction_id: 0x0102_0304_0506_0708, message }).expect("in order");
    };
    receive(&mut exchange, CLIENT, Message::Request(Box::new(request())));
    let asked = srdma_cm::Request { local_id: server.id, ..request() };
    receive(&mut exchange, server.address, Message::Reply(reply(&asked, 0x90, 0x100)));
    exchange.group_ready(now);
    let ids = Ids { local: 7, remote: TERMS.client_id };
    let disconnect = srdma_cm::DisconnectRequest { ids, remote_qpn: TERMS.designated_qpn };
    receive(&mut exchange, CLIENT, Message::DisconnectRequest(disconnect));
    let mut refused = request();
    refused.service_id += 1;
    let refused = Mad { transaction_id: 9, message: Message::Request(Box::new(refused)) };
    exchange.receive(now, CLIENT, &refused).expect_err("another port");
    while let Some(action) = exchange.next_action() {
        if let Action::Send(to, mad) = action {
            sent.push((to, *mad));
        }
    }
    sent
}

/// D250: tshark finds in each message what the exchange put there.
#[test]
fn tshark_reads_an_exchange() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("sent.pcapng");
    let mut writer = Writer::new(BufWriter::new(File::create(&path).expect("a file"))).expect("a capture");
    let interface = writer.add_interface("cm").expect("a capture");
    for (number, (to, mad)) in sent().iter().enumerate() {
        let length = (Udp::LEN + PAYLOAD_LEN) as u16;
        let ipv6 = Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: length,
            next_header: NextHeader::UDP,
            hop_limit: 64,
            source: PROXY,
            destination: *to,
        };
        let udp = Udp { source_port: ROCEV2_PORT, destination_port: ROCEV2_PORT, length, checksum: 0 };
        let flow = Flow { source: PROXY, destination: *to, ports: (ROCEV2_PORT, ROCEV2_PORT) };
        let payload = flow.emit(mad, Psn::new(number as u32));
        let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
        let (ipv6, udp) = (ipv6.emit(), udp.emit());
        let pieces: [&[u8]; 4] = [&ethernet, ipv6.as_bytes(), udp.as_bytes(), &payload];
        writer.write_packet(interface, number as u64, &pieces).expect("a capture");
    }
    writer.finish().expect("a capture");
    let fields = [
        "infiniband.mad.attributeid",
        "infiniband.mad.transactionid",
        "infiniband.cm.req.localqpn",
        "infiniband.cm.req.startpsn",
        "infiniband.cm.req.serviceid.dport",
        "infiniband.cm.req.pppmtu",
        "infiniband.cm.req.prim_localgid",
        "infiniband.cm.req.prim_remotegid",
        "infiniband.cm.req.ip_cm.sip6",
        "infiniband.cm.req.ip_cm.dip6",
        "infiniband.cm.req.prim_localacktout",
        "infiniband.cm.req.retrcount",
        "infiniband.cm.rep.localqpn",
        "infiniband.cm.rep.startpsn",
        "infiniband.cm.rep.remotecommid",
        "infiniband.cm.rep.tgtackdelay",
        "infiniband.cm.rtu.remotecommid",
        "infiniband.cm.dreq.remotecommid",
        "infiniband.cm.drsp.remotecommid",
        "infiniband.cm.rej.reason",
        "_ws.malformed",
    ];
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-T", "fields", "-E", "separator=,", "-r"]).arg(&path);
    let output = tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let messages = text.lines().map(|line| {
        let found = fields.iter().zip(line.split(',')).filter(|(_, value)| !value.is_empty());
        found.map(|(field, value)| format!("{}={value}", field.trim_start_matches("infiniband."))).collect::<Vec<_>>()
    });
    let messages: Vec<String> = messages.map(|found| found.join("\n  ")).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

/// The parties of the tests share the format with the exchange: this is what keeps it right.
#[test]
fn the_parties_of_tests_ask_as_linux_does() {
    let network = Network::new(1, 1, Faults { loss: 0, repetition: 0, delay_ns: 0 });
    assert_eq!(network.peers[0].own_qpn, qpn(0x77).get());
}
