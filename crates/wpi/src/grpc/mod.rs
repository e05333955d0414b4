//! gRPC by tonic, without generated code: calls by their paths.

pub(crate) mod client;
mod incoming;
pub(crate) mod server;

pub(crate) use incoming::{Admission, tcp, unix};

/// Octets of a message at most: 4,096 shard assignments with long host names have less.
const MAX_MESSAGE_OCTETS: usize = 2 << 20;

/// Paths of the calls of `proto/wpi.proto` and `proto/peer.proto`.
pub(crate) mod paths {
    pub(crate) const PLUGIN_INFO: &str = "/wpi.v1alpha1.IdentityService/GetPluginInfo";
    pub(crate) const PLUGIN_CAPABILITIES: &str = "/wpi.v1alpha1.IdentityService/GetPluginCapabilities";
    pub(crate) const CREATE_BUFFER: &str = "/wpi.v1alpha1.ControllerService/CreateWeightBuffer";
    pub(crate) const AUTHORIZE: &str = "/wpi.v1alpha1.ControllerService/AuthorizeTransfer";
    pub(crate) const TOPOLOGY: &str = "/wpi.v1alpha1.ControllerService/QueryTopology";
    pub(crate) const REGISTER: &str = "/wpi.v1alpha1.NodeService/NodeRegisterWeight";
    pub(crate) const STAGE: &str = "/wpi.v1alpha1.NodeService/NodeStageWeight";
    pub(crate) const UNSTAGE: &str = "/wpi.v1alpha1.NodeService/NodeUnstageWeight";
    pub(crate) const PROPAGATE: &str = "/wpi.v1alpha1.NodeService/NodePropagate";
    pub(crate) const MAP: &str = "/wpi.v1alpha1.NodeService/NodeTranslateAndMap";
    pub(crate) const RECEIVE: &str = "/srdma.wpi.v1.PeerService/Receive";
}
