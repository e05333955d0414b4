"""Calls a driver by grpcio: client.py SOCKET PEER_ADDRESS. Every field of every request has an effect that is checked."""

import sys

import grpc
import peer_pb2
import wpi_pb2 as wpi

calls = 0


class Service:
    def __init__(self, channel, name, module):
        descriptor = module.DESCRIPTOR.services_by_name[name]
        self.calls = {method.name: (f"/{descriptor.full_name}/{method.name}", method) for method in descriptor.methods}
        self.channel = channel
        self.module = module

    def __getattr__(self, name):
        path, method = self.calls[name]
        make = self.channel.unary_stream if path.endswith("Receive") else self.channel.unary_unary
        call = make(
            path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=getattr(self.module, method.output_type.name).FromString,
        )

        def counted(**fields):
            global calls
            calls += 1
            answer = call(getattr(self.module, method.input_type.name)(**fields), timeout=60)
            return list(answer) if path.endswith("Receive") else answer

        return counted


def refused(code, text, call, **fields):
    try:
        answer = call(**fields)
    except grpc.RpcError as error:
        assert error.code() == code, error
        assert text in error.details(), error.details()
    else:
        raise AssertionError(f"not refused: {answer}")


def main():
    socket, peer = sys.argv[1:]
    code = grpc.StatusCode
    channel = grpc.insecure_channel(f"unix://{socket}")
    identity = Service(channel, "IdentityService", wpi)
    controller = Service(channel, "ControllerService", wpi)
    node = Service(channel, "NodeService", wpi)
    drivers = Service(grpc.insecure_channel(peer), "PeerService", peer_pb2)

    info = identity.GetPluginInfo()
    assert info.name == "srdma" and info.vendor_version, info
    kinds = wpi.GetPluginCapabilitiesResponse.PluginCapability
    capabilities = identity.GetPluginCapabilities().capabilities
    assert [one.capability for one in capabilities] == [kinds.PRE_STAGING_SUPPORT], capabilities

    controller.CreateWeightBuffer(buffer_id="a", size_bytes=5000)
    refused(code.UNIMPLEMENTED, "AuthorizeTransfer", controller.AuthorizeTransfer, buffer_id="a", target_node_id="b")
    refused(code.UNIMPLEMENTED, "QueryTopology", controller.QueryTopology, node_id="b")

    node.NodeStageWeight(claim_id="c", buffer_id="a", shard_index=-1)
    assert node.NodeRegisterWeight(buffer_id="a", size_bytes=5000).dma_buf_handle.startswith("memfd:")
    refused(code.FAILED_PRECONDITION, "has 5000 octets, not 5", node.NodeRegisterWeight, buffer_id="a", size_bytes=5)
    node.NodeStageWeight(claim_id="d", buffer_id="a", size_bytes=300, shard_index=2, total_shards=4)
    path = node.NodeTranslateAndMap(claim_id="d").device_path
    assert path.endswith("/sockets/a__shard_2.sock"), path
    refused(code.NOT_FOUND, "source_path", node.NodeStageWeight, claim_id="e", buffer_id="b", source_path="missing")
    layouts = wpi.LayoutDescriptor
    for field in ["source_layout", "target_layout"]:
        layout = layouts(type=layouts.VENDOR_SPECIFIC_TILING, tiling_metadata=b"tiles")
        refused(code.UNIMPLEMENTED, "ROW_MAJOR", node.NodeTranslateAndMap, claim_id="c", **{field: layout})
    tiled = layouts(tiling_metadata=b"tiles")
    refused(code.UNIMPLEMENTED, "ROW_MAJOR", node.NodePropagate, buffer_id="a", target_layout=tiled)

    refused(code.INVALID_ARGUMENT, "no target", node.NodePropagate, buffer_id="a")
    own = ["node-2", "node-1"]
    refused(code.INVALID_ARGUMENT, "node-1 is this node", node.NodePropagate, buffer_id="a", target_node_ids=own)

    def scatter(expected, text, **shard):
        shards = [wpi.ShardAssignment(**{"target_node_id": "node-2", "length_bytes": 10, **shard})]
        fields = {"buffer_id": "a", "target_node_ids": ["node-2"], "mode": wpi.SCATTER, "shard_assignments": shards}
        refused(expected, text, node.NodePropagate, **fields)

    scatter(code.INVALID_ARGUMENT, "node-3, which is not in target_node_ids", target_node_id="node-3")
    scatter(code.OUT_OF_RANGE, "octets 4991 to 4991 + 10", offset_bytes=4991)
    scatter(code.OUT_OF_RANGE, "octets 0 to 0 + 5001", length_bytes=5001)
    scatter(code.UNIMPLEMENTED, "GPU 7", target_gpu_id=7)
    # The name of the group of shard 9 is asked for at a controller, which is not there.
    scatter(code.UNAVAILABLE, "controller", shard_index=9)

    node.NodeUnstageWeight(claim_id="c")
    refused(code.NOT_FOUND, "not staged", node.NodeRegisterWeight, buffer_id="a")

    invitation = {"group": 7, "buffer_id": "a", "targets": ["x", "node-1"], "target": "node-1", "timeout_ms": 1000}
    refused(code.INVALID_ARGUMENT, "no octets", drivers.Receive, **invitation)
    # Shard 2, which is 3 on the wire, has a buffer of its own, with 300 octets.
    shard = {**invitation, "shard": 3, "offset": 600, "length": 301}
    refused(code.FAILED_PRECONDITION, "a__shard_2 has 300 octets, not 301", drivers.Receive, **shard)
    print(f"{calls} calls")


main()
