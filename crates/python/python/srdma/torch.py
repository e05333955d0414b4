"""Backend `srdma` of `torch.distributed`: a broadcast goes to all ranks at once, by a group.

    import srdma.torch                       # torch 2.14 and later find the backend without it
    torch.distributed.init_process_group("srdma", ...)
    torch.distributed.broadcast(tensor, src=0)

Tensors are contiguous ones in memory of the host. Other collectives are refused by name, or handed to gloo if
$SRDMA_TORCH_FALLBACK is `gloo`. docs/applications.md has the settings.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from . import _native, errors

_MIB = 1 << 20
#: Publications that a source has under way.
_AHEAD = 2


class Unsupported(errors.Error, NotImplementedError):
    """A collective that groups do not carry."""


def _setting(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 20:
        raise ValueError(f"{name}: {text!r} is no number from 1 to {1 << 20}")
    return int(text)


def _octets(tensor: torch.Tensor) -> torch.Tensor:
    """The octets of a tensor, in place."""
    if tensor.device.type != "cpu":
        raise errors.DeviceMemory(
            f"the tensor is on {tensor.device}, which this version does not read or write: copy it to memory of the "
            "host, as by .cpu()"
        )
    if not tensor.is_contiguous():
        raise errors.NotContiguous("the tensor is not contiguous: use .contiguous()")
    return tensor.detach().reshape(-1).view(torch.uint8)


class _Sending:
    """The group whose source this rank is."""

    def __init__(self, device: _native.Device, slot_octets: int, receivers: int) -> None:
        proxy = os.environ.get("SRDMA_TORCH_PROXY") or None
        self.source = device.create_group(slot_octets=slot_octets, on_failure="strict", proxy=proxy)
        self.slot_octets = slot_octets
        self.receivers = receivers
        self.is_committed = False
        self.version = 0

    def send(self, octets: torch.Tensor, timeout: float) -> None:
        if not self.is_committed:
            self.source.commit(self.receivers, timeout)
            self.is_committed = True
        for piece in octets.split(self.slot_octets):
            self.version += 1
            self.source.publish(self.version, {"octets": piece})
            if self.version > _AHEAD:
                self._wait(self.version - _AHEAD, timeout)
        self._wait(self.version, timeout)

    def _wait(self, version: int, timeout: float) -> None:
        try:
            self.source.wait(version, timeout)
        except errors.Timeout:
            # The buffers are the caller's again, and the ranks that wait get an error.
            self.source.close()
            raise errors.Timeout(
                f"a rank did not take version {version} within {timeout:g} s, the time-out of the process group"
            ) from None


class _Receiving:
    """The group of another rank."""

    def __init__(self, device: _native.Device, group: int) -> None:
        self.receiver = device.join(group)

    def receive(self, octets: torch.Tensor, slot_octets: int, timeout: float) -> None:
        for piece in octets.split(slot_octets):
            with self.receiver.next_version(timeout) as version:
                found = version["octets"]
                if len(found) != len(piece):
                    raise errors.Error(f"{len(found)} octets of the source's tensor, {len(piece)} of this rank's")
                with warnings.catch_warnings():
                    # It is only read.
                    warnings.filterwarnings("ignore", message="The given buffer is not writable")
                    piece.copy_(torch.frombuffer(found, dtype=torch.uint8))
                found.release()


class ProcessGroup(dist.ProcessGroup):
    """Ranks that broadcast by groups."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store = dist.PrefixStore("srdma", store)
        self._timeout = timeout
        self._name = ""
        self._slot_octets = _setting("SRDMA_TORCH_SLOT_MIB", 64) * _MIB
        self._device: _native.Device | None = None
        self._sending: _Sending | None = None
        self._receiving: dict[int, _Receiving] = {}
        self._barriers = 0
        # Collectives of a process group are executed one at a time.
        self._lock = threading.Lock()
        fallback = os.environ.get("SRDMA_TORCH_FALLBACK", "")
        if fallback not in ("", "gloo"):
            raise ValueError(f"SRDMA_TORCH_FALLBACK: {fallback!r}: gloo is supported")
        inner = dist.PrefixStore("gloo", store)
        self._gloo = dist.ProcessGroupGloo(inner, rank, size, timeout=timeout) if fallback else None

    def getBackendName(self) -> str:
        return "srdma"

    # torch 2.x keeps the name in the backends of a group, which this one has not, and asks for it when the group is
    # destroyed.
    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        if len(tensors) != 1:
            raise Unsupported(f"srdma: broadcast of {len(tensors)} tensors at once: one at a time")
        octets = _octets(tensors[0])
        timeout = self._seconds(opts)
        with self._lock:
            self._broadcast(octets, opts.rootRank, timeout)
        return self._done(tensors)

    def barrier(self, opts: Any = None) -> Any:
        timeout = self._seconds(opts)
        with self._lock:
            self._wait_for_all(timeout)
        return self._done([])

    def _seconds(self, opts: Any) -> float:
        given = getattr(opts, "timeout", None)
        # Negative: none was given.
        chosen = given if given is not None and given > timedelta(0) else self._timeout
        return float(chosen.total_seconds())

    @staticmethod
    def _done(result: list[torch.Tensor]) -> Any:
        """Work that is done. A Work that waits for a future drops its exception, and one in Python would be forgotten
        by torch 1.13: so collectives end, or raise, before they return, also with `async_op`."""
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        future.set_result(result)
        return torch._C._distributed_c10d._create_work_from_future(future)

    def _broadcast(self, octets: torch.Tensor, root: int, timeout: float) -> None:
        # The tensor has as many elements at each rank.
        if self.size() == 1 or octets.numel() == 0:
            return
        if self._device is None:
            self._device = _native.Device()
        if root == self.rank():
            if self._sending is None:
                self._sending = _Sending(self._device, self._slot_octets, self.size() - 1)
                self._store.set(f"group of {root}", f"{self._sending.source.group} {self._slot_octets}")
            self._sending.send(octets, timeout)
            return
        receiving = self._receiving.get(root)
        if receiving is None:
            self._wait_for(f"group of {root}", timeout, f"rank {root} did not broadcast")
            group, slot_octets = self._store.get(f"group of {root}").decode().split()
            if int(slot_octets) != self._slot_octets:
                own = self._slot_octets
                raise errors.Error(f"SRDMA_TORCH_SLOT_MIB differs: {slot_octets} octets at rank {root}, {own} here")
            receiving = self._receiving[root] = _Receiving(self._device, int(group))
        receiving.receive(octets, self._slot_octets, timeout)

    def _wait_for(self, key: str, timeout: float, otherwise: str) -> None:
        try:
            self._store.wait([key], timedelta(seconds=timeout))
        except RuntimeError as error:
            text = f"{otherwise} within {timeout:g} s, the time-out of the process group: {error}"
            raise errors.Timeout(text) from error

    def _wait_for_all(self, timeout: float) -> None:
        self._barriers += 1
        name = f"barrier {self._barriers}"
        if self._store.add(name, 1) == self.size():
            self._store.set(f"{name} passed", "")
        self._wait_for(f"{name} passed", timeout, "not all ranks came to the barrier")


def _other(name: str) -> Callable[..., Any]:
    """A collective that gloo does, if it is asked for."""

    def call(self: ProcessGroup, *arguments: Any, **keywords: Any) -> Any:
        if self._gloo is None:
            raise Unsupported(
                f"srdma: {name} is not a broadcast: use another process group for it, or set SRDMA_TORCH_FALLBACK=gloo"
            )
        return getattr(self._gloo, name)(*arguments, **keywords)

    call.__name__ = name
    return call


for _name in (
    "allgather",
    "allgather_coalesced",
    "_allgather_base",
    "allreduce",
    "allreduce_coalesced",
    "alltoall",
    "alltoall_base",
    "gather",
    "recv",
    "recv_anysource",
    "reduce",
    "reduce_scatter",
    "_reduce_scatter_base",
    "scatter",
    "send",
):
    setattr(ProcessGroup, _name, _other(_name))


def _create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    return ProcessGroup(store, rank, size, timeout)


def register() -> None:
    """Registers the backend; without effect if it is."""
    if hasattr(dist.Backend, "SRDMA"):
        return
    try:
        dist.Backend.register_backend("srdma", _create, devices=["cpu"])
    except TypeError:
        # torch 1.x knows no devices.
        dist.Backend.register_backend("srdma", _create)


register()
