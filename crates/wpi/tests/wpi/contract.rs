//! `proto/wpi.proto` is the wire interface of llm-d-incubation/weight-propagation-interface: names, numbers and types of
//! its proto/wpi.proto at commit aa777647f679f90569dd400e83819e6c8bdad4be, read on 2026-11-26.

use std::path::Path;
use std::process::Command;

/// A line for each field, value and call, as `describe.py` prints them.
const INTERFACE: &str = "\
package wpi.v1alpha1
ControllerService.AuthorizeTransfer AuthorizeTransferRequest AuthorizeTransferResponse
ControllerService.CreateWeightBuffer CreateWeightBufferRequest CreateWeightBufferResponse
ControllerService.QueryTopology QueryTopologyRequest QueryTopologyResponse
IdentityService.GetPluginCapabilities GetPluginCapabilitiesRequest GetPluginCapabilitiesResponse
IdentityService.GetPluginInfo GetPluginInfoRequest GetPluginInfoResponse
NodeService.NodePropagate NodePropagateRequest NodePropagateResponse
NodeService.NodeRegisterWeight NodeRegisterWeightRequest NodeRegisterWeightResponse
NodeService.NodeStageWeight NodeStageWeightRequest NodeStageWeightResponse
NodeService.NodeTranslateAndMap NodeTranslateAndMapRequest NodeTranslateAndMapResponse
NodeService.NodeUnstageWeight NodeUnstageWeightRequest NodeUnstageWeightResponse
AuthorizeTransferRequest.buffer_id = 1 string
AuthorizeTransferRequest.target_node_id = 2 string
AuthorizeTransferResponse.rkey = 1 bytes
CreateWeightBufferRequest.buffer_id = 1 string
CreateWeightBufferRequest.size_bytes = 2 uint64
GetPluginCapabilitiesResponse.PluginCapability.Capability.CROSS_VENDOR_TRANSFER = 1
GetPluginCapabilitiesResponse.PluginCapability.Capability.ON_THE_FLY_RESHAPING = 2
GetPluginCapabilitiesResponse.PluginCapability.Capability.PRE_STAGING_SUPPORT = 3
GetPluginCapabilitiesResponse.PluginCapability.Capability.UNKNOWN = 0
GetPluginCapabilitiesResponse.PluginCapability.capability = 1 GetPluginCapabilitiesResponse.PluginCapability.Capability
GetPluginCapabilitiesResponse.capabilities = 1 repeated GetPluginCapabilitiesResponse.PluginCapability
GetPluginInfoResponse.name = 1 string
GetPluginInfoResponse.vendor_version = 2 string
LayoutDescriptor.LayoutType.COLUMN_MAJOR = 1
LayoutDescriptor.LayoutType.ROW_MAJOR = 0
LayoutDescriptor.LayoutType.VENDOR_SPECIFIC_TILING = 2
LayoutDescriptor.tiling_metadata = 2 bytes
LayoutDescriptor.type = 1 LayoutDescriptor.LayoutType
NodePropagateRequest.buffer_id = 1 string
NodePropagateRequest.mode = 4 PropagateMode
NodePropagateRequest.shard_assignments = 5 repeated ShardAssignment
NodePropagateRequest.target_layout = 3 LayoutDescriptor
NodePropagateRequest.target_node_ids = 2 repeated string
NodeRegisterWeightRequest.buffer_id = 1 string
NodeRegisterWeightRequest.size_bytes = 2 uint64
NodeRegisterWeightResponse.dma_buf_handle = 1 string
NodeStageWeightRequest.buffer_id = 2 string
NodeStageWeightRequest.claim_id = 1 string
NodeStageWeightRequest.shard_index = 5 int32
NodeStageWeightRequest.size_bytes = 4 uint64
NodeStageWeightRequest.source_path = 3 string
NodeStageWeightRequest.total_shards = 6 int32
NodeTranslateAndMapRequest.claim_id = 1 string
NodeTranslateAndMapRequest.source_layout = 2 LayoutDescriptor
NodeTranslateAndMapRequest.target_layout = 3 LayoutDescriptor
NodeTranslateAndMapResponse.device_path = 1 string
NodeUnstageWeightRequest.claim_id = 1 string
PropagateMode.BROADCAST = 0
PropagateMode.SCATTER = 1
QueryTopologyRequest.node_id = 1 string
QueryTopologyResponse.topology_info = 1 string
ShardAssignment.length_bytes = 4 uint64
ShardAssignment.offset_bytes = 3 uint64
ShardAssignment.shard_index = 2 int32
ShardAssignment.target_gpu_id = 5 int32
ShardAssignment.target_node_id = 1 string
";

/// Compiles a proto file by protoc, and describes it.
fn described(proto: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = directory.path().join("descriptors");
    let mut protoc = Command::new("protoc");
    protoc.arg(format!("--descriptor_set_out={}", descriptors.display()));
    protoc.arg(format!("--proto_path={}", place.join("proto").display())).arg(proto);
    assert!(protoc.status().expect("protoc runs").success());
    let describe = place.join("tests/wpi/describe.py");
    let output = Command::new("/usr/bin/python3").arg(describe).arg(&descriptors).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_proto_has_the_numbers_and_types_of_the_interface() {
    let found = described("wpi.proto");
    let lines = |text: &'static str| text.lines().collect::<std::collections::BTreeSet<_>>();
    let found: &'static str = found.leak();
    let (found, expected) = (lines(found), lines(INTERFACE));
    let missing: Vec<_> = expected.difference(&found).collect();
    let more: Vec<_> = found.difference(&expected).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing: {missing:#?}, more: {more:#?}");
}

/// Between drivers of different versions nothing may change its number.
#[test]
fn invitations_have_their_numbers() {
    assert_eq!(
        described("peer.proto"),
        "package srdma.wpi.v1\n\
         PeerService.Receive Invitation stream Progress\n\
         Invitation.buffer_id = 2 string\n\
         Invitation.group = 1 uint32\n\
         Invitation.is_whole = 6 bool\n\
         Invitation.length = 4 uint64\n\
         Invitation.offset = 3 uint64\n\
         Invitation.shard = 5 uint32\n\
         Invitation.target = 8 string\n\
         Invitation.targets = 7 repeated string\n\
         Invitation.timeout_ms = 9 uint32\n\
         Progress.Step.JOINED = 1\n\
         Progress.Step.UNKNOWN = 0\n\
         Progress.Step.WHOLE = 2\n\
         Progress.step = 1 Progress.Step\n"
    );
}
