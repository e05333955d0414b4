//! Requests that make no sense, each by its code and its sentence.

use super::{Running, options, refused, stage};
use srdma_wpi::messages::{
    CreateWeightBufferRequest, Invitation, LayoutDescriptor, LayoutType, NodePropagateRequest,
    NodeRegisterWeightRequest, NodeTranslateAndMapRequest, NodeUnstageWeightRequest, ShardAssignment,
};
use srdma_wpi::{Client, Service, StartError};
use std::fs;

const INVALID_ARGUMENT: i32 = 3;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const RESOURCE_EXHAUSTED: i32 = 8;
const FAILED_PRECONDITION: i32 = 9;
const OUT_OF_RANGE: i32 = 11;
const UNIMPLEMENTED: i32 = 12;
const UNAVAILABLE: i32 = 14;

fn propagate(buffer: &str, targets: &[&str]) -> NodePropagateRequest {
    let target_node_ids = targets.iter().map(|target| (*target).to_owned()).collect();
    NodePropagateRequest { buffer_id: buffer.to_owned(), target_node_ids, ..Default::default() }
}

#[test]
fn a_buffer_that_is_not_there_is_not_found() {
    let running = Running::start();
    let client = running.client();
    let expected = "buffer m is not staged at this node";
    assert_eq!(refused(client.propagate(propagate("m", &["node-2"])), NOT_FOUND), expected);
    let register = NodeRegisterWeightRequest { buffer_id: "m".to_owned(), size_bytes: 0 };
    assert_eq!(refused(client.register(register), NOT_FOUND), expected);
    let map = NodeTranslateAndMapRequest { claim_id: "c".to_owned(), ..Default::default() };
    assert_eq!(refused(client.map(map), NOT_FOUND), "claim c is not staged at this node");
    client.unstage(NodeUnstageWeightRequest { claim_id: "c".to_owned() }).expect("it is not there");
    for name in ["../m", "", "m_notify", "wpi-grpc", "a/b", "x\0"] {
        refused(client.stage(stage("c", name, 1)), INVALID_ARGUMENT);
    }
    assert_eq!(fs::read_dir(running.directory.path()).expect("readable").count(), 2, "nothing is made elsewhere");
}

#[test]
fn what_the_driver_does_not_do_is_named() {
    let running = Running::start();
    let client = running.client();
    client.stage(stage("c", "m", 1000)).expect("staged");
    let columns = LayoutDescriptor { r#type: LayoutType::ColumnMajor as i32, tiling_metadata: Vec::new() };
    let layout = NodePropagateRequest { target_layout: Some(columns.clone()), ..propagate("m", &["node-2"]) };
    assert!(refused(client.propagate(layout), UNIMPLEMENTED).contains("does not change layouts"));
    let map = NodeTranslateAndMapRequest {
        claim_id: "c".to_owned(),
        source_layout: None,
        target_layout: Some(LayoutDescriptor { r#type: 0, tiling_metadata: vec![1] }),
    };
    refused(client.map(map), UNIMPLEMENTED);
    let shard = |target: &str, offset_bytes, length_bytes, target_gpu_id| ShardAssignment {
        target_node_id: target.to_owned(),
        shard_index: 0,
        offset_bytes,
        length_bytes,
        target_gpu_id,
    };
    let scatter = |shards: Vec<ShardAssignment>| NodePropagateRequest {
        mode: 1,
        shard_assignments: shards,
        ..propagate("m", &["node-2"])
    };
    let gpu = refused(client.propagate(scatter(vec![shard("node-2", 0, 10, 1)])), UNIMPLEMENTED);
    assert_eq!(gpu, "GPU 1: this driver has memory of the host alone, which is GPU 0 of requests");
    refused(client.propagate(scatter(vec![shard("node-2", 991, 10, 0)])), OUT_OF_RANGE);
    refused(client.propagate(scatter(vec![shard("node-2", u64::MAX, 10, 0)])), OUT_OF_RANGE);
    refused(client.propagate(scatter(vec![])), INVALID_ARGUMENT);
    refused(client.propagate(NodePropagateRequest { mode: 9, ..propagate("m", &["node-2"]) }), INVALID_ARGUMENT);
    refused(client.propagate(propagate("m", &[])), INVALID_ARGUMENT);
    let own = refused(client.propagate(propagate("m", &["10.0.0.1:7"])), INVALID_ARGUMENT);
    assert_eq!(own, "target 10.0.0.1:7 is this node, which has the buffer");
    // A request that was refused has not left the buffer in use.
    let no_controller = refused(client.propagate(propagate("m", &["node-2"])), UNAVAILABLE);
    assert!(no_controller.contains("http://[::1]:1"), "{no_controller}");
    client.unstage(NodeUnstageWeightRequest { claim_id: "c".to_owned() }).expect("not in use");
}

#[test]
fn lengths_and_memory_have_limits() {
    let running = Running::start();
    let client = running.client();
    let announce = |buffer: &str, size_bytes| {
        client.create_buffer(CreateWeightBufferRequest { buffer_id: buffer.to_owned(), size_bytes })
    };
    refused(client.stage(stage("c", "m", 0)), INVALID_ARGUMENT);
    announce("m", 1000).expect("new");
    announce("m", 1000).expect("the same");
    refused(announce("m", 1001), FAILED_PRECONDITION);
    client.stage(stage("c", "m", 0)).expect("as announced");
    client.stage(stage("c", "m", 1000)).expect("the same again");
    refused(client.stage(stage("d", "m", 999)), FAILED_PRECONDITION);
    let large = refused(client.stage(stage("d", "n", 1 << 20)), RESOURCE_EXHAUSTED);
    assert!(large.contains("the 1047576 octets that are left of --memory"), "{large}");
    refused(client.stage(stage("d", "n", u64::MAX)), RESOURCE_EXHAUSTED);
    assert_eq!(client.capabilities().expect("it answers").capabilities.len(), 1);
}

/// D214.
#[test]
fn a_file_elsewhere_is_not_read() {
    let running = Running::start();
    let client = running.client();
    fs::write(running.directory.path().join("secret"), "secret").expect("a file");
    let from = |path: &str| {
        let mut request = stage("c", "m", 100);
        request.source_path = path.to_owned();
        client.stage(request)
    };
    for path in ["/etc/passwd", "../secret", "../models/../secret"] {
        refused(from(path), PERMISSION_DENIED);
    }
    refused(from("missing"), NOT_FOUND);
    fs::write(running.directory.path().join("models/long"), [0; 101]).expect("a file");
    refused(from("long"), FAILED_PRECONDITION);
    assert!(!running.socket("m.sock").exists());
    let without = Running::with(|options| options.source_directory = None);
    let mut request = stage("c", "m", 100);
    request.source_path = "m".to_owned();
    let message = refused(without.client().stage(request), PERMISSION_DENIED);
    assert_eq!(message, "source_path is not permitted: the driver runs without --source-directory");
}

/// D211: without a controller that confirms it no invitation is followed.
#[test]
fn invitations_are_checked_before_anything_is_done() {
    let running = Running::start();
    running.client().stage(stage("c", "m", 1000)).expect("staged");
    let peer = Client::by_address(&running.peer()).expect("it listens");
    let invitation = Invitation {
        group: 7,
        buffer_id: "m".to_owned(),
        length: 1000,
        is_whole: true,
        targets: vec!["node-1".to_owned()],
        target: "node-1".to_owned(),
        timeout_ms: 1000,
        ..Default::default()
    };
    refused(peer.invite(Invitation { buffer_id: "n".to_owned(), ..invitation.clone() }), NOT_FOUND);
    refused(peer.invite(Invitation { buffer_id: "../m".to_owned(), ..invitation.clone() }), INVALID_ARGUMENT);
    refused(peer.invite(Invitation { target: "node-2".to_owned(), ..invitation.clone() }), PERMISSION_DENIED);
    refused(peer.invite(Invitation { targets: vec![], ..invitation.clone() }), PERMISSION_DENIED);
    refused(peer.invite(Invitation { length: 0, ..invitation.clone() }), INVALID_ARGUMENT);
    refused(peer.invite(Invitation { length: 999, ..invitation.clone() }), FAILED_PRECONDITION);
    let unconfirmed = refused(peer.invite(invitation), UNAVAILABLE);
    assert!(unconfirmed.starts_with("the controller: "), "{unconfirmed}");
    // Calls of operators are not answered to other nodes, and the other way round.
    refused(peer.info(), UNIMPLEMENTED);
    refused(running.client().invite(Invitation::default()), UNIMPLEMENTED);
    running.client().unstage(NodeUnstageWeightRequest { claim_id: "c".to_owned() }).expect("not in use");
}

#[test]
fn a_driver_that_others_could_call_does_not_start_unless_that_is_intended() {
    let directory = tempfile::tempdir_in("/tmp").expect("a directory");
    let mut options = options(directory.path());
    options.listen = "[::]:0".parse().ok();
    let error = Service::start(&options).err().expect("refused");
    assert!(matches!(error, StartError::Open { .. }), "{error}");
    options.is_open = true;
    options.device.address = None;
    // It would be an address of IPv4.
    options.toward = "::ffff:127.0.0.1".parse().ok();
    assert!(matches!(Service::start(&options), Err(StartError::NoRoute { .. })));
    options.toward = "::1".parse().ok();
    drop(Service::start(&options).expect("it is intended"));
    options.own_hosts = vec!["a b".to_owned()];
    assert!(matches!(Service::start(&options), Err(StartError::OwnHost(_))));
    options.own_hosts = Vec::new();
    assert!(matches!(Service::start(&options), Err(StartError::NoOwnHost)));
}
