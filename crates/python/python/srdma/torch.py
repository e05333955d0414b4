"""Backend `srdma` of `torch.distributed`: what one rank has goes to all others at once, by a group.

    import srdma.torch                       # torch 2.14 and later find the backend without it
    torch.distributed.init_process_group("srdma", ...)
    torch.distributed.broadcast(tensor, src=0)

Collectives are broadcast, scatter, all_gather and barrier; others are refused by name, or handed to gloo if
$SRDMA_TORCH_FALLBACK is `gloo`. Tensors are contiguous ones in memory of the host. docs/applications.md has the
settings.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from . import _native, _tensors, errors

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


def _device() -> _native.Device:
    """The device of this rank: of the host's addresses, if they are given, the one of its local rank."""
    text = os.environ.get("SRDMA_TORCH_ADDRESSES", "")
    if not text:
        return _native.Device()
    addresses = text.split(",")
    local = os.environ.get("LOCAL_RANK", "")
    if not local.isdecimal() or int(local) >= len(addresses):
        raise ValueError(
            f"SRDMA_TORCH_ADDRESSES has {len(addresses)} addresses, and $LOCAL_RANK is {local!r}: expected a number "
            "below that"
        )
    return _native.Device(address=addresses[int(local)])


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
    """A group whose source this rank is."""

    def __init__(self, device: _native.Device, slot_octets: int, receivers: int) -> None:
        self.source = device.create_group(slot_octets=slot_octets, on_failure="strict")
        self._receivers = receivers
        self._is_committed = False
        self._version = 0

    def publish(self, piece: torch.Tensor, timeout: float) -> None:
        if not self._is_committed:
            self.source.commit(self._receivers, timeout)
            self._is_committed = True
        self._version += 1
        self.source.publish(self._version, {"octets": piece})

    def settle(self, ahead: int, timeout: float) -> None:
        """Waits until at most `ahead` versions are under way."""
        version = self._version - ahead
        if version < 1:
            return
        try:
            self.source.wait(version, timeout)
        except errors.Timeout:
            # The buffers are the caller's again, and the ranks that wait get an error.
            self.source.close()
            raise errors.Timeout(
                f"a rank did not take version {version} within {timeout:g} s, the time-out of the process group"
            ) from None


class _Receiving:
    """A group of another rank."""

    def __init__(self, device: _native.Device, group: int) -> None:
        self._receiver = device.join(group)

    def receive(self, piece: torch.Tensor, timeout: float) -> None:
        with self._receiver.next_version(timeout) as version:
            found = version["octets"]
            if len(found) != len(piece):
                raise errors.Error(f"{len(found)} octets of the source's tensor, {len(piece)} of this rank's")
            _tensors.copy_octets(piece, found)
            found.release()


class _Groups:
    """The groups of a process group. Each is made when a collective first needs it, and has a name in the store."""

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._slot_octets = _setting("SRDMA_TORCH_SLOT_MIB", 64) * _MIB
        self._device: _native.Device | None = None
        self._sending: dict[str, _Sending] = {}
        self._receiving: dict[str, _Receiving] = {}

    def pieces(self, octets: torch.Tensor) -> list[torch.Tensor]:
        """The versions of a tensor: a longer one than a slot goes in several."""
        return list(octets.split(self._slot_octets)) if octets.numel() else []

    def others(self) -> list[int]:
        return [rank for rank in range(self._size) if rank != self._rank]

    def to_all(self) -> _Sending:
        return self._send(f"group of {self._rank}", self._size - 1)

    def from_all_of(self, root: int, timeout: float) -> _Receiving:
        return self._receive(f"group of {root}", root, timeout)

    def to(self, rank: int) -> _Sending:
        return self._send(f"group of {self._rank} to {rank}", 1)

    def from_one(self, root: int, timeout: float) -> _Receiving:
        return self._receive(f"group of {root} to {self._rank}", root, timeout)

    def wait_for(self, key: str, timeout: float, otherwise: str) -> None:
        try:
            self._store.wait([key], timedelta(seconds=timeout))
        except RuntimeError as error:
            text = f"{otherwise} within {timeout:g} s, the time-out of the process group: {error}"
            raise errors.Timeout(text) from error

    def _opened(self) -> _native.Device:
        if self._device is None:
            self._device = _device()
        return self._device

    def _send(self, name: str, receivers: int) -> _Sending:
        if name not in self._sending:
            self._sending[name] = sending = _Sending(self._opened(), self._slot_octets, receivers)
            self._store.set(name, f"{sending.source.group} {self._slot_octets}")
        return self._sending[name]

    def _receive(self, name: str, root: int, timeout: float) -> _Receiving:
        if name not in self._receiving:
            self.wait_for(name, timeout, f"rank {root} did not send")
            group, slot_octets = self._store.get(name).decode().split()
            if int(slot_octets) != self._slot_octets:
                own = self._slot_octets
                raise errors.Error(f"SRDMA_TORCH_SLOT_MIB differs: {slot_octets} octets at rank {root}, {own} here")
            self._receiving[name] = _Receiving(self._opened(), int(group))
        return self._receiving[name]


def _exchange(
    groups: _Groups,
    sent: list[tuple[_Sending, torch.Tensor]],
    received: list[tuple[_Receiving, torch.Tensor]],
    timeout: float,
) -> None:
    """Sends and receives tensors at the same time, a slot of each at a time."""
    to_send = [(sending, groups.pieces(octets)) for sending, octets in sent]
    to_receive = [(receiving, groups.pieces(octets)) for receiving, octets in received]
    for step in range(max((len(pieces) for _, pieces in [*to_send, *to_receive]), default=0)):
        for sending, pieces in to_send:
            if step < len(pieces):
                sending.publish(pieces[step], timeout)
        for receiving, pieces in to_receive:
            if step < len(pieces):
                receiving.receive(pieces[step], timeout)
        for sending, _ in to_send:
            sending.settle(_AHEAD, timeout)
    for sending, _ in to_send:
        sending.settle(0, timeout)


class ProcessGroup(dist.ProcessGroup):
    """Ranks that send to each other by groups."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store = dist.PrefixStore("srdma", store)
        self._timeout = timeout
        self._name = ""
        self._groups = _Groups(self._store, rank, size)
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
        octets = _octets(_only(tensors, "broadcast"))
        timeout, root = self._seconds(opts), opts.rootRank
        with self._lock:
            # The tensor has as many elements at each rank.
            if self.size() > 1 and octets.numel() > 0:
                if root == self.rank():
                    _exchange(self._groups, [(self._groups.to_all(), octets)], [], timeout)
                else:
                    _exchange(self._groups, [], [(self._groups.from_all_of(root, timeout), octets)], timeout)
        return self._done(tensors)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> Any:
        own = _octets(_only(outputs, "scatter"))
        timeout, root = self._seconds(opts), opts.rootRank
        with self._lock:
            if root == self.rank():
                parts = self._of_each_rank(_only(inputs, "scatter"))
                own.copy_(parts[root])
                # All groups are known before this rank waits for the receiver of one.
                sent = [(self._groups.to(rank), parts[rank]) for rank in self._groups.others() if own.numel()]
                _exchange(self._groups, sent, [], timeout)
            elif own.numel() > 0:
                _exchange(self._groups, [], [(self._groups.from_one(root, timeout), own)], timeout)
        return self._done(outputs)

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        gathered, own = _only(outputs, "allgather"), _octets(_only(inputs, "allgather"))
        self._gather(self._of_each_rank(gathered), own, self._seconds(opts))
        return self._done(gathered)

    def _allgather_base(self, output: torch.Tensor, own: torch.Tensor, opts: Any = None) -> Any:
        octets = _octets(output)
        if output.dtype != own.dtype or output.numel() != self.size() * own.numel():
            raise ValueError(f"an output of {self.size()} times the elements of the input is expected, of its type")
        self._gather(list(octets.chunk(self.size())), _octets(own), self._seconds(opts))
        return self._done([output])

    def barrier(self, opts: Any = None) -> Any:
        timeout = self._seconds(opts)
        with self._lock:
            self._barriers += 1
            name = f"barrier {self._barriers}"
            if self._store.add(name, 1) == self.size():
                self._store.set(f"{name} passed", "")
            self._groups.wait_for(f"{name} passed", timeout, "not all ranks came to the barrier")
        return self._done([])

    def _gather(self, outputs: list[torch.Tensor], own: torch.Tensor, timeout: float) -> None:
        rank, groups = self.rank(), self._groups
        with self._lock:
            outputs[rank].copy_(own)
            if self.size() == 1 or own.numel() == 0:
                return
            # Each rank is a receiver of all others before it waits for its own receivers.
            sending = groups.to_all()
            received = [(groups.from_all_of(other, timeout), outputs[other]) for other in groups.others()]
            _exchange(groups, [(sending, own)], received, timeout)

    def _of_each_rank(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """The octets of a tensor for each rank."""
        if len(tensors) != self.size():
            raise ValueError(f"{len(tensors)} tensors for a world of {self.size()} ranks")
        if any(tensor.dtype != tensors[0].dtype or tensor.numel() != tensors[0].numel() for tensor in tensors):
            raise Unsupported("srdma: tensors of different types or lengths in one collective")
        return [_octets(tensor) for tensor in tensors]

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


_T = TypeVar("_T")


def _only(given: list[_T], name: str) -> _T:
    if len(given) != 1:
        raise Unsupported(f"srdma: {name} of {len(given)} tensors at once: one at a time")
    return given[0]


def _other(name: str) -> Callable[..., Any]:
    """A collective that gloo does, if it is asked for."""

    def call(self: ProcessGroup, *arguments: Any, **keywords: Any) -> Any:
        if self._gloo is None:
            raise Unsupported(
                f"srdma: {name} is none of broadcast, scatter, all_gather and barrier: use another process group for "
                "it, or set SRDMA_TORCH_FALLBACK=gloo"
            )
        return getattr(self._gloo, name)(*arguments, **keywords)

    call.__name__ = name
    return call


for _name in (
    "allgather_coalesced",
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
