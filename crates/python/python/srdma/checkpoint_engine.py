"""Backend `srdma` of checkpoint-engine 0.4: buckets go from the rank that has them to all others at once.

    import srdma.checkpoint_engine
    srdma.checkpoint_engine.use()            # before the ParameterServer is created
    server = checkpoint_engine.ParameterServer(...)

Broadcasts go by groups, everything else by gloo (D217). docs/frameworks.md has the settings.
"""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from checkpoint_engine.distributed import base

from . import errors
from . import torch as backend

_TIMEOUT = timedelta(minutes=10)


class Group:
    """Ranks that broadcast by groups of srdma, and do the rest by gloo."""

    def __init__(self, store: dist.Store, ranks: list[int], rank: int, timeout: timedelta) -> None:
        self.ranks = ranks
        place, size = ranks.index(rank), len(ranks)
        self.groups = backend.ProcessGroup(dist.PrefixStore("broadcast", store), place, size, timeout)
        self.gloo = dist.ProcessGroupGloo(dist.PrefixStore("others", store), place, size, timeout=timeout)


class DistributedSrdma(base.Distributed):
    """Tensors of a GPU are copied to memory of the host and back."""

    def __init__(self) -> None:
        self._all: Group | None = None
        self._parts: list[Group] = []
        self._made = 0

    def init_process_group(self, rank: int, world_size: int, store: dist.Store, **kwargs: Any) -> None:
        if self._all is not None:
            raise errors.Error("the process group is initialized already")
        self._rank, self._store = rank, store
        self._timeout: timedelta = kwargs.get("timeout") or _TIMEOUT
        self._all = Group(dist.PrefixStore("srdma", store), list(range(world_size)), rank, self._timeout)

    def destroy_process_group(self, group: Any = None) -> None:
        if group is not None:
            self._parts.remove(self._group(group))
            return
        self._all, self._parts = None, []

    def is_initialized(self) -> bool:
        return self._all is not None

    def all_gather_object(self, object_list: list[Any], obj: Any, group: Any = None) -> None:
        gloo = self._group(group).gloo
        octets = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
        lengths = _gathered(gloo, torch.tensor([len(octets)]))
        longest = max(int(length) for length in lengths)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(octets)] = octets
        for place, found in enumerate(_gathered(gloo, padded)):
            object_list[place] = pickle.loads(found[: int(lengths[place])].numpy().tobytes())

    def all_reduce(self, tensor: torch.Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, **kwargs: Any) -> None:
        options = dist.AllreduceOptions()
        options.reduceOp = op
        copy = tensor.detach().cpu().contiguous()
        _finish(self._group(group).gloo.allreduce([copy], options))
        _return(copy, tensor)

    def broadcast(self, tensor: torch.Tensor, src: int = 0, group: Any = None, **kwargs: Any) -> None:
        chosen = self._group(group)
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = chosen.ranks.index(src), 0
        copy = tensor.detach().cpu().contiguous()
        chosen.groups.broadcast([copy], options).wait()
        if self._rank != src:
            _return(copy, tensor)

    def barrier(self, group: Any = None, **kwargs: Any) -> None:
        _finish(self._group(group).gloo.barrier())

    def new_group(self, ranks: list[int], **kwargs: Any) -> Group | None:
        everyone = self._group(None).ranks
        members = sorted(ranks) or everyone
        # All ranks make the same groups in the same order.
        self._made += 1
        if self._rank not in members:
            return None
        part = Group(dist.PrefixStore(f"srdma {self._made}", self._store), members, self._rank, self._timeout)
        self._parts.append(part)
        return part

    def _group(self, group: Any) -> Group:
        if self._all is None:
            raise errors.Error("the process group is not initialized")
        if group is None:
            return self._all
        if group not in self._parts:
            raise errors.Error("the group is not one of new_group")
        return self._parts[self._parts.index(group)]


def _gathered(gloo: Any, tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors of all ranks, of the same length at each."""
    found = [torch.zeros_like(tensor) for _ in range(gloo.size())]
    _finish(gloo.allgather([found], [tensor]))
    return found


def _finish(work: Any) -> None:
    try:
        work.wait()
    except RuntimeError as error:
        raise errors.Error(f"gloo: {error}") from error


def _return(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copies what was done in memory of the host to the tensor, if it is elsewhere."""
    if copy.data_ptr() != tensor.data_ptr():
        tensor.copy_(copy)


def use() -> None:
    """Makes this the backend of the process. checkpoint-engine 0.4 takes its own by `use_backend` only."""
    base._BACKEND_INSTANCE = DistributedSrdma()
