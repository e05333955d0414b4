"""Weights of a model as versions of a group, for the adapters of frameworks.

A transfer is a sequence of buckets, each a version: a buffer `metadata`, and one for each tensor, or piece of a tensor
that is longer than a bucket, named by its place: `0`, `1`, and so on (D215).
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _metadata, _native, errors
from ._metadata import InvalidWeights, Metadata, Piece

if TYPE_CHECKING:
    import torch

#: Buffers of a version begin at multiples of this in a slot.
_ALIGNMENT_OCTETS = 64


def host() -> str:
    """The host, as far as its processes have one address and can share a receiver."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}-{os.stat('/proc/self/ns/net').st_ino}-{os.geteuid()}"


def _octets(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The octets of a tensor in the order of its elements, in the memory of its device."""
    import torch

    if hasattr(tensor, "full_tensor"):
        raise InvalidWeights(f"tensor {name!r} is a shard: its full_tensor() is needed")
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise InvalidWeights(f"tensor {name!r} of layout {tensor.layout} on {tensor.device} has no octets to be sent")
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def copy_octets(place: torch.Tensor, octets: memoryview) -> None:
    """Copies octets of a version to a tensor of octets."""
    import torch

    with warnings.catch_warnings():
        # It is only read.
        warnings.filterwarnings("ignore", message="The given buffer is not writable")
        place.copy_(torch.frombuffer(octets, dtype=torch.uint8))


class _Bucket:
    """Memory of the host that tensors are copied to."""

    def __init__(self, capacity: int) -> None:
        import torch

        self.memory = torch.empty(capacity, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
        self.clear()

    def clear(self) -> None:
        self.pieces: list[Piece] = []
        self._buffers: list[tuple[str, Any]] = []
        self._end = 0
        self._metadata_octets = _metadata.FRAME_OCTETS

    def has_room(self, piece: Piece) -> bool:
        return (
            self._end + piece.octets <= len(self.memory)
            and len(self.pieces) < _metadata.MOST_TENSORS
            and self._metadata_octets + _metadata.described_octets(piece) <= _metadata.MOST_METADATA_OCTETS
        )

    def add(self, piece: Piece, octets: torch.Tensor) -> None:
        place = self.memory[self._end : self._end + piece.octets]
        place.copy_(octets)
        self._buffers.append((str(len(self.pieces)), place))
        self.pieces.append(piece)
        self._metadata_octets += _metadata.described_octets(piece)
        self._end = -(-(self._end + piece.octets) // _ALIGNMENT_OCTETS) * _ALIGNMENT_OCTETS

    def buffers(self, metadata: Metadata) -> list[tuple[str, Any]]:
        return [("metadata", _metadata.encode(metadata)), *self._buffers]


def _created(device: _native.Device, end: float, options: dict[str, Any]) -> _native.Source:
    """A group. A given Proxy Address is that of the former group until the nodes have removed it."""
    while True:
        try:
            return device.create_group(**options)
        except errors.Controller as error:
            if options["proxy"] is None or "(address-in-use, " not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.1)


#: A wait that may take long: called at once, or by another thread.
Wait = Callable[[], None]


class Sender:
    """The source of a group whose versions are buckets of weights.

    Tensors are copied when they are given: the next one may use the same memory. The group is a strict one: a
    receiver that does not take a bucket in time ends it, so that no model is updated without the others.
    """

    def __init__(
        self,
        device: _native.Device,
        bucket_octets: int,
        timeout: float,
        *,
        proxy: str | None = None,
        digest: str | None = None,
    ) -> None:
        if not _ALIGNMENT_OCTETS <= bucket_octets <= _metadata.MOST_TENSOR_OCTETS:
            most = _metadata.MOST_TENSOR_OCTETS
            raise InvalidWeights(f"buckets of {bucket_octets} octets: {_ALIGNMENT_OCTETS} to {most} are possible")
        self._capacity = bucket_octets // _ALIGNMENT_OCTETS * _ALIGNMENT_OCTETS
        self._timeout = timeout
        octets = _metadata.MOST_METADATA_OCTETS + self._capacity
        options = {"slot_octets": octets, "on_failure": "strict", "proxy": proxy, "digest": digest}
        self._source = _created(device, time.monotonic() + timeout, options)
        # One is filled while the other is sent.
        self._buckets: list[_Bucket] = []
        self._version = 0
        self._sent = 0
        self._step: int | None = None
        #: Called each half second of a wait; what it raises ends the wait.
        self.check: Callable[[], None] = lambda: None

    @property
    def group(self) -> int:
        return self._source.group

    def commit(self, receivers: int) -> None:
        """Waits for so many hosts."""
        try:
            self._source.commit(receivers, self._timeout)
        except errors.Error:
            self.close()
            raise

    def send(self, weights: Iterable[tuple[str, torch.Tensor]], step: int | None = None) -> None:
        """Sends all weights, and returns when each host has them."""
        try:
            self.begin(step)
            for name, tensor in weights:
                for wait in self.put(name, tensor):
                    wait()
            self.finish()()
        except BaseException:
            self.close()
            raise

    def begin(self, step: int | None) -> None:
        if not self._buckets:
            self._buckets = [_Bucket(self._capacity), _Bucket(self._capacity)]
        self._step = _metadata.step(step)
        self._sent = 0
        self._filling.clear()

    def put(self, name: str, tensor: torch.Tensor) -> Iterator[Wait]:
        """Sends a tensor, when a bucket is full; each wait that it yields is to be called before the next is taken."""
        octets = _octets(name, tensor)
        dtype = str(tensor.dtype).removeprefix("torch.")
        # As the receivers look at it.
        _metadata.piece([name, dtype, list(tensor.shape), 0, len(octets)], len(self._filling.pieces))
        first = 0
        while True:
            piece = Piece(name, dtype, tuple(tensor.shape), first, min(len(octets) - first, self._capacity))
            if not self._filling.has_room(piece):
                self._publish(is_last=False)
                # The other bucket is that of the version before.
                yield lambda: self._wait(self._version - 1)
                self._filling.clear()
            self._filling.add(piece, octets[first : first + piece.octets])
            first += piece.octets
            if first == len(octets):
                return

    def finish(self) -> Wait:
        """Sends what is left; when the wait is over each host has all."""
        self._publish(is_last=True)
        return lambda: self._wait(self._version)

    def close(self) -> None:
        """Closes the group: receivers that lack something get `GroupClosed`."""
        self._source.close()
        self._buckets = []

    @property
    def _filling(self) -> _Bucket:
        return self._buckets[self._version % 2]

    def _publish(self, is_last: bool) -> None:
        filled = self._filling
        metadata = Metadata(self._sent, is_last, self._step, tuple(filled.pieces))
        self._source.publish(self._version + 1, filled.buffers(metadata))
        self._version += 1
        self._sent += 1

    def _wait(self, version: int) -> None:
        if version == 0:
            return
        end = time.monotonic() + self._timeout
        while True:
            left = end - time.monotonic()
            try:
                return self._source.wait(version, min(max(left, 0.0), 0.5))
            except errors.Timeout:
                if left <= 0:
                    raise errors.Timeout(
                        f"a receiver did not take a bucket of weights (version {version} of group {self.group}) within "
                        f"{self._timeout:g} s"
                    ) from None
            self.check()


class Transfer:
    """The weights of one transfer, from its buckets."""

    def __init__(self, device: torch.device | str, step: int | None = None) -> None:
        self._device = device
        self._step = step
        self._next = 0
        #: A tensor that has not come whole, its octets, and how many are there.
        self._partial: tuple[Piece, torch.Tensor, torch.Tensor, int] | None = None
        self.is_complete = False

    def tensors(self, version: _native.Version) -> Iterator[tuple[str, torch.Tensor]]:
        """Names and tensors of a bucket, on the device, in memory of their own. Releases it."""
        with version:
            found = version["metadata"] if "metadata" in version else None
            if found is None:
                raise InvalidWeights(f"version {version.number} has no metadata of weights")
            metadata = _metadata.decode(found)
            self._check(metadata, version)
            for place, piece in enumerate(metadata.pieces):
                tensor = self._take(piece, version[str(place)])
                if tensor is not None:
                    yield piece.name, tensor
            if metadata.is_last:
                if self._partial is not None:
                    raise InvalidWeights(f"the weights end in the middle of tensor {self._partial[0].name!r}")
                self.is_complete = True

    def _check(self, metadata: Metadata, version: _native.Version) -> None:
        names = ["metadata", *(str(place) for place in range(len(metadata.pieces)))]
        if version.keys() != names:
            raise InvalidWeights(f"version {version.number}: {len(version) - 1} buffers of {len(names) - 1} tensors")
        if metadata.bucket != self._next:
            raise InvalidWeights(f"bucket {metadata.bucket} of the weights has come, the next one is {self._next}")
        if self._step is not None and metadata.step != self._step:
            raise InvalidWeights(f"the weights are those of step {metadata.step}, not of step {self._step}")
        self._next += 1

    def _take(self, piece: Piece, octets: memoryview) -> torch.Tensor | None:
        if len(octets) != piece.octets:
            raise InvalidWeights(f"tensor {piece.name!r}: a buffer of {len(octets)} octets, not {piece.octets}")
        if self._partial is None:
            if piece.first != 0:
                raise InvalidWeights(f"tensor {piece.name!r} begins at octet {piece.first}")
            tensor, place = self._allocate(piece)
        else:
            begun, tensor, place, there = self._partial
            if (begun.name, begun.dtype, begun.shape, there) != (piece.name, piece.dtype, piece.shape, piece.first):
                raise InvalidWeights(f"tensor {begun.name!r} ends at octet {there}, and {piece.name!r} follows")
        end = piece.first + piece.octets
        if piece.octets:
            copy_octets(place[piece.first : end], octets)
        elif not piece.is_whole:
            raise InvalidWeights(f"tensor {piece.name!r}: a piece without octets")
        self._partial = None if end == piece.tensor_octets else (piece, tensor, place, end)
        return tensor if self._partial is None else None

    def _allocate(self, piece: Piece) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        dtype = getattr(torch, piece.dtype, None)
        if dtype is None:
            raise InvalidWeights(f"tensor {piece.name!r}: torch {torch.__version__} has no type {piece.dtype}")
        try:
            tensor = torch.empty(piece.shape, dtype=dtype, device=self._device)
        except RuntimeError as error:
            raise errors.NoMemory(f"tensor {piece.name!r} of {piece.tensor_octets} octets: {error}") from error
        return tensor, tensor.reshape(-1).view(torch.uint8)


class Collector:
    """A receiver of buckets of weights, which the processes of a host share."""

    def __init__(
        self, device: _native.Device, group: int, timeout: float, runtime_directory: str | None = None
    ) -> None:
        # The source gives up first, and says why.
        self._timeout = timeout + 5.0
        self._receiver = device.join(group, shared=True, runtime_directory=runtime_directory)

    def next_bucket(self) -> _native.Version:
        try:
            return self._receiver.next_version(self._timeout)
        except errors.Timeout:
            group = self._receiver.group
            raise errors.Timeout(f"no bucket of weights came by group {group} within {self._timeout:g} s") from None

    def receive(self, transfer: Transfer) -> Iterator[list[tuple[str, torch.Tensor]]]:
        """The tensors of each bucket of a transfer."""
        while not transfer.is_complete:
            if tensors := list(transfer.tensors(self.next_bucket())):
                yield tensors

    def close(self) -> None:
        self._receiver.close()
