//! Calls of programs and operators: identity, buffers of the cluster, buffers of this node.

use super::{InUse, State, to_its_end};
use crate::core::{Assignment, BufferId, Part, Propagation, Refusal, Stage};
use crate::grpc::paths;
use crate::grpc::server::{Answering, Dispatch, status, unary, unknown};
use crate::messages::*;
use crate::network::{Failure, send};
use crate::sockets::Notice;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

/// What the driver says of itself.
const NAME: &str = "srdma";

/// The three services of `proto/wpi.proto`.
pub(crate) struct NodeCalls(pub(crate) Arc<State>);

impl Dispatch for NodeCalls {
    fn answer(self: Arc<Self>, request: http::Request<Body>) -> Answering<http::Response<Body>> {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            match request.uri().path() {
                paths::PLUGIN_INFO => unary(request, |_: GetPluginInfoRequest| async { Ok(info()) }).await,
                paths::PLUGIN_CAPABILITIES => {
                    unary(request, |_: GetPluginCapabilitiesRequest| async { Ok(capabilities()) }).await
                }
                paths::CREATE_BUFFER => unary(request, |message| at_once(state.announce(message))).await,
                paths::AUTHORIZE => {
                    let refused = "who may receive is decided by the controller of the groups";
                    let answer = |_: AuthorizeTransferRequest| no_call("AuthorizeTransfer", refused);
                    unary::<_, AuthorizeTransferResponse, _>(request, answer).await
                }
                paths::TOPOLOGY => {
                    let refused = "the controller of the groups has the topology: GET /v1/topology";
                    let answer = |_: QueryTopologyRequest| no_call("QueryTopology", refused);
                    unary::<_, QueryTopologyResponse, _>(request, answer).await
                }
                paths::REGISTER => unary(request, |message| at_once(state.register(message))).await,
                paths::STAGE => unary(request, |message| Arc::clone(&state).node_stage(message)).await,
                paths::UNSTAGE => unary(request, |message| at_once(state.node_unstage(&message))).await,
                paths::PROPAGATE => unary(request, |message| Arc::clone(&state).propagate(message)).await,
                paths::MAP => unary(request, |message| at_once(state.map(&message))).await,
                other => unknown(other),
            }
        })
    }
}

fn at_once<T>(result: Result<T, Status>) -> std::future::Ready<Result<T, Status>> {
    std::future::ready(result)
}

fn no_call<T>(name: &'static str, why: &'static str) -> std::future::Ready<Result<T, Status>> {
    at_once(Err(status(&Refusal::Call(name, why))))
}

fn info() -> GetPluginInfoResponse {
    GetPluginInfoResponse { name: NAME.to_owned(), vendor_version: env!("CARGO_PKG_VERSION").to_owned() }
}

fn capabilities() -> GetPluginCapabilitiesResponse {
    let staging = PluginCapability { capability: Capability::PreStagingSupport as i32 };
    GetPluginCapabilitiesResponse { capabilities: vec![staging] }
}

/// Refuses layouts that are not those of the octets as they are.
fn check_layout(layout: Option<&LayoutDescriptor>) -> Result<(), Status> {
    let is_plain =
        |layout: &LayoutDescriptor| layout.r#type == LayoutType::RowMajor as i32 && layout.tiling_metadata.is_empty();
    if layout.is_none_or(is_plain) { Ok(()) } else { Err(status(&Refusal::Layout)) }
}

impl State {
    fn announce(&self, message: CreateWeightBufferRequest) -> Result<CreateWeightBufferResponse, Status> {
        self.ask(|driver| driver.announce(&message.buffer_id, message.size_bytes))?;
        Ok(CreateWeightBufferResponse {})
    }

    fn register(&self, message: NodeRegisterWeightRequest) -> Result<NodeRegisterWeightResponse, Status> {
        let buffer = self.ask(|driver| driver.buffer(&message.buffer_id, message.size_bytes))?;
        let (memory, _) = self.parts_of(&buffer)?;
        let dma_buf_handle = memory.handle().map_err(|error| Status::internal(error.to_string()))?;
        Ok(NodeRegisterWeightResponse { dma_buf_handle })
    }

    async fn node_stage(self: Arc<Self>, message: NodeStageWeightRequest) -> Result<NodeStageWeightResponse, Status> {
        let NodeStageWeightRequest { claim_id, buffer_id, source_path, size_bytes, shard_index, total_shards } =
            message;
        let request = Stage { claim: claim_id, buffer: buffer_id, octets: size_bytes, shard_index, total_shards };
        self.stage(request, source_path).await?;
        Ok(NodeStageWeightResponse {})
    }

    fn node_unstage(&self, message: &NodeUnstageWeightRequest) -> Result<NodeUnstageWeightResponse, Status> {
        self.unstage(&message.claim_id)?;
        Ok(NodeUnstageWeightResponse {})
    }

    fn map(&self, message: &NodeTranslateAndMapRequest) -> Result<NodeTranslateAndMapResponse, Status> {
        check_layout(message.source_layout.as_ref())?;
        check_layout(message.target_layout.as_ref())?;
        let buffer = self.ask(|driver| driver.buffer_of(&message.claim_id))?;
        let path = self.directory.path_of(&buffer.socket());
        Ok(NodeTranslateAndMapResponse { device_path: path.to_string_lossy().into_owned() })
    }

    async fn propagate(self: Arc<Self>, message: NodePropagateRequest) -> Result<NodePropagateResponse, Status> {
        check_layout(message.target_layout.as_ref())?;
        let assignment = |shard: ShardAssignment| Assignment {
            target: shard.target_node_id,
            shard_index: shard.shard_index,
            offset: shard.offset_bytes,
            length: shard.length_bytes,
            gpu: shard.target_gpu_id,
        };
        let request = Propagation {
            buffer: message.buffer_id,
            targets: message.target_node_ids,
            mode: message.mode,
            assignments: message.shard_assignments.into_iter().map(assignment).collect(),
        };
        let (buffer, batches) = self.ask(|driver| driver.propagate(&request))?;
        let is_whole = request.assignments.is_empty();
        let in_use = InUse { state: Arc::clone(&self), buffer };
        to_its_end(async move {
            let deadline = Instant::now() + self.timeout;
            let parts = batches.iter().map(Vec::len).sum::<usize>();
            let result = self.distribute(&in_use.buffer, batches, is_whole, deadline).await;
            let took = self.timeout.saturating_sub(deadline.saturating_duration_since(Instant::now()));
            match &result {
                Ok(()) => tracing::info!(parts, ?took, "buffer {} is propagated", in_use.buffer),
                Err(status) => tracing::warn!("buffer {} is not propagated: {}", in_use.buffer, status.message()),
            }
            result.map(|()| NodePropagateResponse {})
        })
        .await
    }

    /// Sends the parts. Those of a batch are sent at the same time; when one fails, no further batch begins.
    async fn distribute(
        &self,
        buffer: &BufferId,
        batches: Vec<Vec<Part>>,
        is_whole: bool,
        deadline: Instant,
    ) -> Result<(), Status> {
        let (memory, notifier) = self.parts_of(buffer)?;
        notifier.say(Notice::PreUpdate);
        for batch in batches {
            let mut sending = JoinSet::new();
            for part in batch {
                let (memory, network, buffer) = (Arc::clone(&memory), Arc::clone(&self.network), buffer.clone());
                sending.spawn(async move {
                    let (offset, length) = (part.offset, part.length);
                    let read = move || memory.read(offset, length);
                    send(&network, &buffer, &part, is_whole, read, deadline).await
                });
            }
            let mut failures = Vec::new();
            while let Some(sent) = sending.join_next().await {
                failures.extend(sent.unwrap_or(Err(Failure::Panicked)).err());
            }
            Failure::of_all(failures)?;
        }
        notifier.say(Notice::Ready);
        Ok(())
    }
}
