//! `srdma perftest` over TCP with recorded parties, and a controller without nodes.

use crate::controller::Controller;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

/// The messages of a party of a recorded conversation.
fn recorded(name: &str, party: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perftest");
    let text = std::fs::read_to_string(directory.join(name).with_extension("txt")).expect("a recording");
    let words = text.lines().filter_map(|line| line.split_once(' '));
    words.filter(|(of, _)| *of == party).map(|(_, octets)| hex::decode(octets).expect("hexadecimal")).collect()
}

/// A server that answers so many messages as it was recorded, with another GID, and ends at the next one. Gives how many
/// it has answered.
fn server(at: u16, answers: usize) -> (SocketAddr, JoinHandle<usize>) {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        for (asked, message) in recorded("write", "server").into_iter().enumerate() {
            let mut question = vec![0; message.len()];
            if stream.read_exact(&mut question).is_err() || asked == answers {
                return asked;
            }
            let text =
                String::from_utf8_lossy(&message).replace(":02:00000000:", &format!(":{:02x}:00000000:", 16 + at));
            let message = if message.len() == 108 { text.into_bytes() } else { message };
            if stream.write_all(&message).is_err() {
                return asked;
            }
        }
        unreachable!("the end is not recorded as an answer")
    });
    (address, server)
}

/// A running `srdma perftest`, which listens.
struct Helper {
    child: Child,
    lines: BufReader<ChildStdout>,
    listening: SocketAddr,
}

impl Helper {
    fn start(url: &str, servers: &[SocketAddr]) -> Self {
        let servers: Vec<String> = servers.iter().map(SocketAddr::to_string).collect();
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        srdma.args(["perftest", "--servers", &servers.join(","), "--listen", "[::1]:0", "--controller", url, "--json"]);
        srdma.args(["--proxy", "2001:db8:cc::1"]);
        let mut child = srdma.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("text");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let listening = line["listening"].as_str().expect("text").parse().expect("an address");
        Helper { child, lines, listening }
    }

    /// The recorded client sends messages until its connection ends; those that were answered.
    fn client(&self, messages: &[Vec<u8>]) -> usize {
        let mut stream = TcpStream::connect(self.listening).expect("it listens");
        let mut answered = 0;
        for message in messages {
            let mut answer = vec![0; message.len()];
            if stream.write_all(message).is_err() || stream.read_exact(&mut answer).is_err() {
                return answered;
            }
            answered += 1;
        }
        stream.shutdown(Shutdown::Both).expect("it is connected");
        answered
    }

    /// Waits for its end: its exit code, and the error that it prints in both ways.
    #[track_caller]
    fn fails(mut self) -> (Option<i32>, String) {
        let mut lines = String::new();
        self.lines.read_to_string(&mut lines).expect("text");
        let mut errors = String::new();
        self.child.stderr.as_mut().expect("a pipe").read_to_string(&mut errors).expect("text");
        let result: serde_json::Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
        assert_eq!(errors, format!("srdma: {}\n", result["error"].as_str().expect("an error")));
        (self.child.wait().expect("a child").code(), errors)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_a_group_does_not_carry_is_refused_before_there_is_one() {
    let folder = tempfile::tempdir().expect("a directory");
    let controller = Controller::start(folder.path());
    let (address, server) = server(0, 15);
    let helper = Helper::start(&controller.url, &[address]);
    assert_eq!(helper.client(&recorded("read", "client")), 4);
    let (code, errors) = helper.fails();
    assert_eq!(code, Some(1));
    assert!(errors.starts_with("srdma: the client is for READ or ATOMIC, which a group does not carry"), "{errors}");
    assert_eq!(server.join().expect("it ends"), 4, "its connection ends, too");
    assert_eq!(controller.client().groups(None, None, None).expect("an answer").total, 0);

    let (address, other) = self::server(0, 15);
    let helper = Helper::start(&controller.url, &[address]);
    assert_eq!(helper.client(&[b"GET / HTTP/1.1\r\n\r\n".to_vec()]), 0);
    assert!(helper.fails().1.starts_with("srdma: the client has sent octets out of turn"));
    other.join().expect("it ends");
}

#[test]
fn the_party_that_ends_is_named_with_the_step() {
    let folder = tempfile::tempdir().expect("a directory");
    let controller = Controller::start(folder.path());
    let client = recorded("write", "client");
    for (answers, step) in [(0, "versions"), (3, "path MTUs"), (4, "keys")] {
        let (first, of_first) = server(0, 15);
        let (second, of_second) = server(1, answers);
        let helper = Helper::start(&controller.url, &[first, second]);
        assert_eq!(helper.client(&client), answers);
        let (code, errors) = helper.fails();
        let expected = format!("srdma: server {second} has closed the connection (in the step of {step})\n");
        assert_eq!((code, errors), (Some(1), expected));
        assert_eq!(of_second.join().expect("it ends"), answers);
        assert!(of_first.join().expect("it ends") <= answers + 1);
    }
    let (address, server) = server(0, 15);
    let helper = Helper::start(&controller.url, &[address]);
    assert_eq!(helper.client(&client[..2]), 2);
    let expected = "srdma: the client has closed the connection (in the step of cache lines)\n".to_owned();
    assert_eq!(helper.fails(), (Some(1), expected));
    assert_eq!(server.join().expect("it ends"), 2);
}

/// The controller has no node that could carry the group: it says so, and the group is gone.
#[test]
fn a_group_that_cannot_be_is_an_error_and_is_closed() {
    let folder = tempfile::tempdir().expect("a directory");
    let controller = Controller::start(folder.path());
    let (address, server) = server(0, 15);
    let helper = Helper::start(&controller.url, &[address]);
    assert_eq!(helper.client(&recorded("write", "client")), 4);
    let (code, errors) = helper.fails();
    assert_eq!(code, Some(1));
    assert!(errors.contains("2001:db8::1"), "{errors}");
    server.join().expect("it ends");
    let groups = controller.client().groups(None, None, None).expect("an answer").groups;
    assert!(groups.is_empty(), "{groups:?}");
}

#[test]
fn servers_that_do_not_listen_and_controllers_that_do_not_answer_are_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let controller = Controller::start(folder.path());
    let unused = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("an address");
    let run = |arguments: &[&str]| {
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.arg("perftest").args(arguments).output().expect("it starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let (server, url) = (unused.to_string(), controller.url.as_str());
    let (code, errors) = run(&["--servers", &server, "--listen", "[::1]:0", "--controller", url, "--wait", "200ms"]);
    assert_eq!(code, Some(2));
    assert!(errors.starts_with(&format!("srdma: cannot connect to server {server}: ")), "{errors}");

    let (code, errors) = run(&["--servers", &server, "--controller", &format!("http://{unused}")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains(&unused.to_string()), "{errors}");

    let (code, errors) = run(&["--servers", "r1:", "--controller", url]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("expected a host, and a port behind a colon"), "{errors}");
}
