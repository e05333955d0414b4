"""Names and parameters of checkpoint-engine 0.4.2, `checkpoint_engine/distributed/base.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Distributed(ABC):
    @abstractmethod
    def init_process_group(self, rank: int, world_size: int, store: Any, **kwargs: Any) -> Any: ...

    @abstractmethod
    def destroy_process_group(self, group: Any = None) -> Any: ...

    @abstractmethod
    def is_initialized(self) -> bool: ...

    @abstractmethod
    def all_gather_object(self, object_list: list[Any], obj: Any, group: Any = None) -> Any: ...

    @abstractmethod
    def all_reduce(self, tensor: Any, op: Any, group: Any = None, **kwargs: Any) -> Any: ...

    @abstractmethod
    def broadcast(self, tensor: Any, src: int, group: Any = None, **kwargs: Any) -> Any: ...

    @abstractmethod
    def barrier(self, group: Any = None, **kwargs: Any) -> Any: ...

    @abstractmethod
    def new_group(self, ranks: list[int], **kwargs: Any) -> Any: ...


_BACKEND_INSTANCE: Distributed


def init_process_group(rank: int, world_size: int, store: Any, **kwargs: Any) -> None:
    _BACKEND_INSTANCE.init_process_group(rank, world_size, store, **kwargs)


def destroy_process_group(group: Any = None) -> None:
    _BACKEND_INSTANCE.destroy_process_group(group)


def is_initialized() -> bool:
    return _BACKEND_INSTANCE.is_initialized()


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    _BACKEND_INSTANCE.all_gather_object(object_list, obj, group)


def all_reduce(tensor: Any, op: Any = None, group: Any = None, **kwargs: Any) -> None:
    _BACKEND_INSTANCE.all_reduce(tensor, op, group, **kwargs)


def broadcast(tensor: Any, src: int = 0, group: Any = None, **kwargs: Any) -> None:
    _BACKEND_INSTANCE.broadcast(tensor, src, group, **kwargs)


def barrier(group: Any = None, **kwargs: Any) -> None:
    _BACKEND_INSTANCE.barrier(group, **kwargs)


def new_group(ranks: list[int], **kwargs: Any) -> Any:
    return _BACKEND_INSTANCE.new_group(ranks, **kwargs)
