"""Weight transfer `srdma` of vLLM 0.33: weights go from rank 0 of the trainers to all workers at once.

At the servers, which find it by the entry point:

    vllm serve MODEL --weight-transfer-config '{"backend": "srdma"}'

At the trainers:

    engine = WeightTransferTrainerFactory.trainer_init(TrainerInit(rank=rank), client=client, source=source)
    engine.send_weights()

docs/frameworks.md has the settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from vllm.distributed.weight_transfer.base import (
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    VLLMWeightSyncClient,
    WeightSource,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory

from . import _metadata, _native, _tensors, errors


@dataclass
class InitInfo(WeightTransferInitInfo):
    """What a worker needs to join: the number of the group at the controller, and seconds that a bucket may take."""

    group: int
    timeout: float = 300.0
    #: As those of the trainer; $SRDMA_CONTROLLER and $SRDMA_PROVIDER of the worker without them.
    controller: str | None = None
    provider: str | None = None
    runtime_directory: str | None = None


@dataclass
class UpdateInfo(WeightTransferUpdateInfo):
    """The number of the update; names, types and shapes come with the weights."""

    update: int


@dataclass
class TrainerInit(TrainerInitInfo):
    """Settings of a transfer. `rank` 0 sends; `bucket_octets` are those of a bucket, of which each worker's host has
    memory for two; `timeout` is in seconds for each bucket."""

    backend: ClassVar[str] = "srdma"

    bucket_octets: int = 256 << 20
    timeout: float = 300.0
    controller: str | None = None
    provider: str | None = None
    address: str | None = None
    proxy: str | None = None
    digest: str | None = None
    runtime_directory: str | None = None


class SrdmaWeightTransferEngine(WeightTransferEngine[InitInfo, UpdateInfo]):
    """Receives weights at a worker. Workers of a host share one receiver."""

    init_info_cls = InitInfo
    update_info_cls = UpdateInfo

    def __init__(self, config: Any, vllm_config: Any, device: torch.device, model: torch.nn.Module) -> None:
        super().__init__(config, vllm_config, device, model)
        self._collector: _tensors.Collector | None = None

    def init_transfer_engine(self, init_info: InitInfo) -> None:
        self.shutdown()
        device = _native.Device(init_info.controller, provider=init_info.provider)
        self._collector = _tensors.Collector(device, init_info.group, init_info.timeout, init_info.runtime_directory)

    def start_weight_update(self) -> None:
        from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

        initialize_layerwise_reload(self.model)

    def receive_weights(self, update_info: UpdateInfo) -> None:
        from vllm.model_executor.model_loader.mtp_validation import disable_mtp_completeness_check

        if self._collector is None:
            raise errors.Error("init_transfer_engine was not called: the worker has joined no group")
        transfer = _tensors.Transfer(self.device, update_info.update)
        # A bucket is a part of the model.
        with disable_mtp_completeness_check():
            for tensors in self._collector.receive(transfer):
                self.model.load_weights(tensors)

    def finish_weight_update(self) -> None:
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

        finalize_layerwise_reload(self.model, self.model_config)

    def shutdown(self) -> None:
        if self._collector is not None:
            self._collector.close()
            self._collector = None


class SrdmaTrainerWeightTransferEngine(TrainerWeightTransferEngine[TrainerInit]):
    """Sends weights to all workers. A transfer that fails closes the group: `trainer_init` makes another one."""

    init_info_cls = TrainerInit

    def __init__(
        self,
        *,
        client: VLLMWeightSyncClient,
        source: WeightSource | None = None,
        is_sender: bool = True,
        rank: int = 0,
        sender: _tensors.Sender | None = None,
    ) -> None:
        super().__init__(client=client, source=source, is_sender=is_sender, rank=rank)
        self._sender = sender
        self._updates = 0

    @classmethod
    def trainer_init(
        cls, init_info: TrainerInit, *, client: VLLMWeightSyncClient, source: WeightSource | None = None
    ) -> Self:
        if source is None or not source.implements_iter_full():
            raise errors.Error("backend srdma sends full tensors: a WeightSource with iter_full is needed")
        for meta in source.metadata:
            if meta.owners is not None and meta.owners[0] != 0:
                raise errors.Error(f"tensor {meta.name!r} is not rank 0's: backend srdma has a single sender, rank 0")
        engine = cls(client=client, source=source, is_sender=init_info.is_sender, rank=init_info.rank)
        if engine.is_sender:
            engine._connect(init_info)
        return engine

    def _connect(self, info: TrainerInit) -> None:
        device = _native.Device(info.controller, provider=info.provider, address=info.address)
        sender = _tensors.Sender(device, info.bucket_octets, info.timeout, proxy=info.proxy, digest=info.digest)
        given = InitInfo(sender.group, info.timeout, info.controller, info.provider, info.runtime_directory)
        try:
            # When it returns each worker has joined, on as many hosts as there are.
            self.client.init_weight_transfer_engine(asdict(given))
        except BaseException:
            sender.close()
            raise
        sender.commit(1)
        self._sender = sender

    def send_weights(self) -> None:
        if not self.is_sender:
            # A weight is made by its owners together.
            for _ in self._weights():
                pass
            return
        if self._sender is None:
            raise errors.Closed("the transfer has failed or was shut down: trainer_init makes another one")
        self._updates += 1
        executor = ThreadPoolExecutor(max_workers=1)
        try:
            self.client.start_weight_update()
            update = executor.submit(self.client.update_weights, asdict(UpdateInfo(self._updates)))
            # A worker that fails is reported at once, not when time is up.
            self._sender.check = lambda: _raise_failure(update)
            self._sender.send(self._weights(), self._updates)
            update.result()
            self.client.finish_weight_update()
        except BaseException:
            self.shutdown()
            raise
        finally:
            # Its thread ends when the client's call does.
            executor.shutdown(wait=False)

    def _weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of the source, which are those that it declares."""
        assert self.source is not None
        if not self.is_sender:
            yield from self.source.iter_full()
            return
        declared = iter(self.source.metadata)
        for name, tensor in self.source.iter_full():
            meta = next(declared, None)
            if meta is None or (name, tensor.dtype, tuple(tensor.shape)) != (meta.name, meta.dtype, meta.shape):
                wanted = "nothing" if meta is None else f"{meta.name!r}, {meta.dtype} {meta.shape}"
                found = f"{name!r}, {tensor.dtype} {tuple(tensor.shape)}"
                raise _metadata.InvalidWeights(f"the WeightSource yields {found}, and declares {wanted}")
            yield name, tensor
        for meta in declared:
            raise _metadata.InvalidWeights(f"the WeightSource declares {meta.name!r}, and does not yield it")

    def shutdown(self) -> None:
        if self._sender is not None:
            self._sender.close()
            self._sender = None


def _raise_failure(update: Future[None]) -> None:
    if update.done():
        update.result()


def register() -> None:
    """Makes the backend known to vLLM; entry point `srdma` of `vllm.general_plugins`. It may be called repeatedly."""
    # A name that is registered is refused by ValueError.
    with contextlib.suppress(ValueError):
        WeightTransferEngineFactory.register_engine("srdma", "srdma.vllm", "SrdmaWeightTransferEngine")
    with contextlib.suppress(ValueError):
        WeightTransferTrainerFactory.register_engine("srdma", "srdma.vllm", "SrdmaTrainerWeightTransferEngine")
