"""Checkpoint engine `srdma` of verl 0.9: weights go from rank 0 of the trainers to all rollout workers at once.

    actor_rollout_ref:
      rollout:
        checkpoint_engine:
          backend: srdma
          custom_backend_module: srdma.verl

docs/frameworks.md has the settings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

import torch
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

from . import _native, _tensors, errors

_Weights = Iterable[tuple[str, torch.Tensor]] | AsyncIterable[tuple[str, torch.Tensor]]


async def _each(weights: _Weights) -> AsyncIterator[tuple[str, torch.Tensor]]:
    if isinstance(weights, AsyncIterable):
        async for pair in weights:
            yield pair
    else:
        for pair in weights:
            yield pair


@CheckpointEngineRegistry.register("srdma")
class SrdmaCheckpointEngine(CheckpointEngine):
    """A group for each step: its source is rank 0 of the trainers, its receivers are the rollout workers' hosts (D216).

    `bucket_size` is in octets, `timeout` in seconds. `device` is where rollout workers get tensors, `address` is rank
    0's.
    """

    def __init__(
        self,
        bucket_size: int,
        is_master: bool = False,
        *,
        timeout: float = 300.0,
        device: str | None = None,
        runtime_directory: str | None = None,
        controller: str | None = None,
        provider: str | None = None,
        address: str | None = None,
        proxy: str | None = None,
        digest: str | None = None,
    ) -> None:
        self._bucket_octets = bucket_size
        self._is_master = is_master
        self._timeout = timeout
        self._tensor_device = device
        self._runtime_directory = runtime_directory
        self._device = _native.Device(controller, provider=provider, address=address if is_master else None)
        self._proxy, self._digest = proxy, digest
        self._sender: _tensors.Sender | None = None
        self._collector: _tensors.Collector | None = None

    def prepare(self) -> dict[str, Any]:
        self.finalize()
        if self._is_master:
            self._sender = _tensors.Sender(
                self._device, self._bucket_octets, self._timeout, proxy=self._proxy, digest=self._digest
            )
        return {"host": _tensors.host(), "group": self._sender.group if self._sender else None}

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        if len(metadata) != actor_wg_world_size + rollout_world_size or rollout_world_size == 0:
            workers = f"{actor_wg_world_size} trainers and {rollout_world_size} rollout workers"
            raise errors.Error(f"metadata of {len(metadata)} workers, for {workers}")
        group = metadata[0]["group"]
        if group is None:
            raise errors.Error("rank 0 of the trainers is not the master: it has made no group")
        hosts = len({found["host"] for found in metadata[actor_wg_world_size:]})

        def keywords(ranks: list[int]) -> dict[str, list[Any]]:
            return {"rank": ranks, "group": [group] * len(ranks), "hosts": [hosts] * len(ranks)}

        # Other trainers take part in making the weights only.
        trainers = [0] + [-1] * (actor_wg_world_size - 1)
        return keywords(trainers), keywords(list(range(1, rollout_world_size + 1)))

    # The keywords are those of build_topology.
    def init_process_group(self, rank: int, group: int, hosts: int) -> None:  # type: ignore[override]
        if rank == 0:
            self._source().commit(hosts)
        elif rank > 0:
            self._collector = _tensors.Collector(self._device, group, self._timeout, self._runtime_directory)

    async def send_weights(self, weights: _Weights, global_steps: int | None = None) -> None:
        if not self._is_master:
            # A weight is made by all trainers together.
            async for _ in _each(weights):
                pass
            return
        sender = self._source()
        try:
            sender.begin(global_steps)
            async for name, tensor in _each(weights):
                for wait in sender.put(name, tensor):
                    await asyncio.to_thread(wait)
            await asyncio.to_thread(sender.finish())
        finally:
            # What is whole stays at the receivers; one that lacks something learns it at once.
            sender.close()

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        if self._collector is None:
            raise errors.Error("init_process_group was not called: the rollout worker has joined no group")
        collector, transfer = self._collector, _tensors.Transfer(self._tensor_device or _default_device(), global_steps)
        try:
            while not transfer.is_complete:
                version = await asyncio.to_thread(collector.next_bucket)
                for pair in transfer.tensors(version):
                    yield pair
        finally:
            if not transfer.is_complete:
                # The others need not wait for a worker that has failed.
                collector.close()

    def finalize(self) -> None:
        if self._sender is not None:
            self._sender.close()
        if self._collector is not None:
            self._collector.close()
        self._sender = self._collector = None

    def _source(self) -> _tensors.Sender:
        if self._sender is None:
            raise errors.Error("prepare was not called: rank 0 of the trainers has no group")
        return self._sender


def _default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
