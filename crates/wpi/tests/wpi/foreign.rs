//! A client of another implementation of gRPC, grpcio, with messages that protoc has made of `proto/wpi.proto`: what the
//! types in `messages` say on the wire is what the file says.

use super::Running;
use std::path::Path;
use std::process::Command;

#[test]
fn a_client_of_grpcio_is_understood() {
    let running = Running::start();
    let generated = tempfile::tempdir().expect("a directory");
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut protoc = Command::new("protoc");
    protoc.arg(format!("--python_out={}", generated.path().display()));
    protoc.arg(format!("--proto_path={}", place.join("proto").display())).args(["wpi.proto", "peer.proto"]);
    assert!(protoc.status().expect("protoc runs").success());
    let mut client = Command::new("/usr/bin/python3");
    client.arg(place.join("tests/wpi/client.py")).arg(running.socket("wpi-grpc.sock")).arg(running.peer());
    let output = client.env("PYTHONPATH", generated.path()).output().expect("python runs");
    let [text, errors] = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(text.lines().last(), Some("25 calls"), "{text}");
}
