//! A client of a driver, which blocks.

use crate::grpc::{client, paths};
use crate::messages::*;
use prost::Message;
use std::path::Path;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::Channel;

/// Why a call has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// The code of gRPC: 5 is NOT_FOUND.
    pub code: i32,
    /// What the driver says.
    pub message: String,
}

impl CallError {
    fn unavailable(error: impl std::fmt::Display) -> Self {
        CallError { code: Code::Unavailable as i32, message: error.to_string() }
    }
}

/// A client of a driver.
pub struct Client {
    runtime: Runtime,
    channel: Channel,
}

type Result<T> = std::result::Result<T, CallError>;

impl Client {
    /// Connects by the driver's socket.
    ///
    /// # Errors
    ///
    /// If no driver listens there.
    pub fn by_socket(path: &Path) -> Result<Self> {
        Client::new(client::by_socket(path))
    }

    /// Connects by TCP: `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// If no driver listens there.
    pub fn by_address(address: &str) -> Result<Self> {
        Client::new(client::by_address(address))
    }

    fn new(channel: impl Future<Output = std::result::Result<Channel, tonic::transport::Error>>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(CallError::unavailable)?;
        let channel = runtime.block_on(channel).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            CallError::unavailable(format!("{error}{cause}"))
        })?;
        Ok(Client { runtime, channel })
    }

    fn call<Q, R>(&self, path: &'static str, request: Q) -> Result<R>
    where
        Q: Message + Default + 'static,
        R: Message + Default + 'static,
    {
        let answer = self.runtime.block_on(client::unary(self.channel.clone(), path, request));
        answer.map_err(|status| CallError { code: status.code() as i32, message: status.message().to_owned() })
    }

    /// What the driver is.
    ///
    /// # Errors
    ///
    /// See [`CallError`]; so for all calls.
    pub fn info(&self) -> Result<GetPluginInfoResponse> {
        self.call(paths::PLUGIN_INFO, GetPluginInfoRequest {})
    }

    /// What the driver can do.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn capabilities(&self) -> Result<GetPluginCapabilitiesResponse> {
        self.call(paths::PLUGIN_CAPABILITIES, GetPluginCapabilitiesRequest {})
    }

    /// Announces the length of a buffer.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn create_buffer(&self, request: CreateWeightBufferRequest) -> Result<CreateWeightBufferResponse> {
        self.call(paths::CREATE_BUFFER, request)
    }

    /// Stages a buffer for a claim.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn stage(&self, request: NodeStageWeightRequest) -> Result<NodeStageWeightResponse> {
        self.call(paths::STAGE, request)
    }

    /// Unstages a claim.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn unstage(&self, request: NodeUnstageWeightRequest) -> Result<NodeUnstageWeightResponse> {
        self.call(paths::UNSTAGE, request)
    }

    /// The handle of a buffer.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn register(&self, request: NodeRegisterWeightRequest) -> Result<NodeRegisterWeightResponse> {
        self.call(paths::REGISTER, request)
    }

    /// Propagates a buffer; returns when all targets have it.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn propagate(&self, request: NodePropagateRequest) -> Result<NodePropagateResponse> {
        self.call(paths::PROPAGATE, request)
    }

    /// The path of the socket that passes the buffer of a claim.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn map(&self, request: NodeTranslateAndMapRequest) -> Result<NodeTranslateAndMapResponse> {
        self.call(paths::MAP, request)
    }

    /// Invites the driver as that of another node does, and waits for the first answer: for tests of what it refuses.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn invite(&self, invitation: Invitation) -> Result<Option<Progress>> {
        let answers = async {
            client::streaming::<_, Progress>(self.channel.clone(), paths::RECEIVE, invitation).await?.message().await
        };
        let answer = self.runtime.block_on(answers);
        answer.map_err(|status| CallError { code: status.code() as i32, message: status.message().to_owned() })
    }
}
