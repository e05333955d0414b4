//! Messages of the Weight Propagation Interface, as `proto/wpi.proto` has them, and those between drivers, as
//! `proto/peer.proto` has them.
#![allow(missing_docs, reason = "the two files explain services, messages and fields")]

use prost::{Enumeration, Message};

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct GetPluginInfoRequest {}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct GetPluginInfoResponse {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub vendor_version: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct GetPluginCapabilitiesRequest {}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct GetPluginCapabilitiesResponse {
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<PluginCapability>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct PluginCapability {
    #[prost(enumeration = "Capability", tag = "1")]
    pub capability: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum Capability {
    Unknown = 0,
    CrossVendorTransfer = 1,
    OnTheFlyReshaping = 2,
    PreStagingSupport = 3,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct CreateWeightBufferRequest {
    #[prost(string, tag = "1")]
    pub buffer_id: String,
    #[prost(uint64, tag = "2")]
    pub size_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CreateWeightBufferResponse {}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct AuthorizeTransferRequest {
    #[prost(string, tag = "1")]
    pub buffer_id: String,
    #[prost(string, tag = "2")]
    pub target_node_id: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct AuthorizeTransferResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub rkey: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct QueryTopologyRequest {
    #[prost(string, tag = "1")]
    pub node_id: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct QueryTopologyResponse {
    #[prost(string, tag = "1")]
    pub topology_info: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodeRegisterWeightRequest {
    #[prost(string, tag = "1")]
    pub buffer_id: String,
    #[prost(uint64, tag = "2")]
    pub size_bytes: u64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodeRegisterWeightResponse {
    #[prost(string, tag = "1")]
    pub dma_buf_handle: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodeStageWeightRequest {
    #[prost(string, tag = "1")]
    pub claim_id: String,
    #[prost(string, tag = "2")]
    pub buffer_id: String,
    #[prost(string, tag = "3")]
    pub source_path: String,
    #[prost(uint64, tag = "4")]
    pub size_bytes: u64,
    #[prost(int32, tag = "5")]
    pub shard_index: i32,
    #[prost(int32, tag = "6")]
    pub total_shards: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct NodeStageWeightResponse {}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodeUnstageWeightRequest {
    #[prost(string, tag = "1")]
    pub claim_id: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct NodeUnstageWeightResponse {}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct LayoutDescriptor {
    #[prost(enumeration = "LayoutType", tag = "1")]
    pub r#type: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub tiling_metadata: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum LayoutType {
    RowMajor = 0,
    ColumnMajor = 1,
    VendorSpecificTiling = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum PropagateMode {
    Broadcast = 0,
    Scatter = 1,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct ShardAssignment {
    #[prost(string, tag = "1")]
    pub target_node_id: String,
    #[prost(int32, tag = "2")]
    pub shard_index: i32,
    #[prost(uint64, tag = "3")]
    pub offset_bytes: u64,
    #[prost(uint64, tag = "4")]
    pub length_bytes: u64,
    #[prost(int32, tag = "5")]
    pub target_gpu_id: i32,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodePropagateRequest {
    #[prost(string, tag = "1")]
    pub buffer_id: String,
    #[prost(string, repeated, tag = "2")]
    pub target_node_ids: Vec<String>,
    #[prost(message, optional, tag = "3")]
    pub target_layout: Option<LayoutDescriptor>,
    #[prost(enumeration = "PropagateMode", tag = "4")]
    pub mode: i32,
    #[prost(message, repeated, tag = "5")]
    pub shard_assignments: Vec<ShardAssignment>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct NodePropagateResponse {}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodeTranslateAndMapRequest {
    #[prost(string, tag = "1")]
    pub claim_id: String,
    #[prost(message, optional, tag = "2")]
    pub source_layout: Option<LayoutDescriptor>,
    #[prost(message, optional, tag = "3")]
    pub target_layout: Option<LayoutDescriptor>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct NodeTranslateAndMapResponse {
    #[prost(string, tag = "1")]
    pub device_path: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub struct Invitation {
    #[prost(uint32, tag = "1")]
    pub group: u32,
    #[prost(string, tag = "2")]
    pub buffer_id: String,
    #[prost(uint64, tag = "3")]
    pub offset: u64,
    #[prost(uint64, tag = "4")]
    pub length: u64,
    #[prost(uint32, tag = "5")]
    pub shard: u32,
    #[prost(bool, tag = "6")]
    pub is_whole: bool,
    #[prost(string, repeated, tag = "7")]
    pub targets: Vec<String>,
    #[prost(string, tag = "8")]
    pub target: String,
    #[prost(uint32, tag = "9")]
    pub timeout_ms: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Progress {
    #[prost(enumeration = "Step", tag = "1")]
    pub step: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum Step {
    Unknown = 0,
    Joined = 1,
    Whole = 2,
}
