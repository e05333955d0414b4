//! What programs of the node see.

use super::{PATIENCE, Running, options, stage};
use srdma_wpi::messages::{NodeRegisterWeightRequest, NodeTranslateAndMapRequest, NodeUnstageWeightRequest};
use srdma_wpi::{Client, DirectoryError, Service, StartError};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

#[track_caller]
fn says(running: &Running, buffer: &str, text: &str) -> String {
    let output = running.consumer(buffer, &["says", text]).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// A program writes the buffer, and another one sees it: both have mapped the same memory.
#[test]
fn the_descriptor_of_a_buffer_is_passed() {
    let running = Running::start();
    let client = running.client();
    client.stage(stage("c", "m", 10_000)).expect("staged");
    let mapped = client.map(NodeTranslateAndMapRequest { claim_id: "c".to_owned(), ..Default::default() });
    assert_eq!(mapped.expect("there").device_path, running.socket("m.sock").display().to_string());
    let registered = client.register(NodeRegisterWeightRequest { buffer_id: "m".to_owned(), size_bytes: 10_000 });
    assert!(registered.expect("there").dma_buf_handle.starts_with("memfd:"));
    let content = running.directory.path().join("content");
    fs::write(&content, (0..10_000_u32).map(|at| (at % 251) as u8).collect::<Vec<u8>>()).expect("a file");
    let path = content.to_str().expect("UTF-8");
    for command in [&["fill", path][..], &["compare", path, "0"]] {
        assert!(running.consumer("m", command).status().expect("python runs").success());
    }
    assert_eq!(says(&running, "m", "GPU=0\n"), "OK 1");
    // One of a GPU gets no descriptor, but the reason.
    let gpu = says(&running, "m", "GPU=3\n");
    assert_eq!(gpu, "ERROR GPU 3: this driver has memory of the host alone, which is GPU 0 of requests 0");
    for garbage in ["", "\n", "GPU=x\n", "GET / HTTP/1.1\r\n\r\n", &"x".repeat(100)] {
        assert_eq!(says(&running, "m", garbage), "ERROR expected the line GPU=0 0", "{garbage:?}");
    }
    client.unstage(NodeUnstageWeightRequest { claim_id: "c".to_owned() }).expect("unstaged");
    assert!(!running.socket("m.sock").exists() && !running.socket("m_notify.sock").exists());
}

/// A consumer that comes late is told that a buffer is ready; one whose buffer is not is not.
#[test]
fn a_buffer_that_was_filled_is_ready() {
    let running = Running::start();
    let client = running.client();
    let content = running.directory.path().join("models/content");
    fs::write(&content, [7; 500]).expect("a file");
    let mut request = stage("c", "m", 0);
    request.source_path = content.display().to_string();
    client.stage(request).expect("staged");
    let path = content.to_str().expect("UTF-8");
    assert!(running.consumer("m", &["compare", path, "0"]).status().expect("python runs").success());
    let output = running.consumer("m", &["notices", "1"]).output().expect("python runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "connected\nREADY\n");

    client.stage(stage("d", "n", 500)).expect("staged");
    let mut waiting = running.consumer("n", &["notices", "1"]).stdout(Stdio::piped()).spawn().expect("python runs");
    let mut lines = BufReader::new(waiting.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "connected");
    // Its end is the next that it learns.
    client.unstage(NodeUnstageWeightRequest { claim_id: "d".to_owned() }).expect("unstaged");
    assert_eq!(lines.next().expect("a line").expect("text"), "");
    assert!(waiting.wait().expect("a child").success());
}

/// D212: the driver does not start where others could put sockets in place of its own, and its sockets are its user's.
#[test]
fn sockets_are_the_drivers_alone() {
    let running = Running::start();
    let directory = running.directory.path().join("sockets");
    running.client().stage(stage("c", "m", 1)).expect("staged");
    for name in ["wpi-grpc.sock", "m.sock", "m_notify.sock"] {
        let mode = fs::metadata(running.socket(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let second = Service::start(&options(running.directory.path())).err();
    assert!(matches!(second, Some(StartError::Directory(DirectoryError::InUse(_)))), "one driver");
    let options = options(running.directory.path());
    drop(running.service);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("its mode");
    let refused = Service::start(&options).err().expect("refused");
    assert!(matches!(refused, StartError::Directory(DirectoryError::Writable { mode: 0o777, .. })), "{refused}");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("its mode");
    drop(Service::start(&options).expect("it starts again"));
    assert!(!directory.join("wpi-grpc.sock").exists());
}

/// What is not gRPC ends its connection, and nothing else.
#[test]
fn garbage_ends_its_connection_alone() {
    let running = Running::with(|options| options.listen = "[::1]:0".parse().ok());
    let client = running.client();
    let noise: Vec<u8> = (0..20_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let broken = [&preface[..], &[0xFF; 9], &noise].concat();
    for garbage in [&noise[..], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &broken, &preface[..10]] {
        let mut stream = UnixStream::connect(running.socket("wpi-grpc.sock")).expect("it listens");
        // It may be closed meanwhile.
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let _ = stream.read_to_end(&mut Vec::new());
        for address in [running.peer(), running.service.address().expect("it listens").to_string()] {
            let mut stream = TcpStream::connect(&address).expect("it listens");
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            stream.set_read_timeout(Some(PATIENCE)).expect("a time");
            let _ = stream.read_to_end(&mut Vec::new());
        }
        assert_eq!(client.info().expect("it answers").name, "srdma");
    }
    // One that says nothing does not keep its place.
    let mut silent = TcpStream::connect(running.peer()).expect("it listens");
    silent.set_read_timeout(Some(PATIENCE)).expect("a time");
    assert!(matches!(silent.read(&mut [0]), Ok(0)), "closed after five seconds");
    let by_address = Client::by_address(&running.service.address().expect("it listens").to_string());
    assert_eq!(by_address.expect("it listens").info().expect("it answers").name, "srdma");
}
