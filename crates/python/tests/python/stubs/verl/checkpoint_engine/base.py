"""Names and parameters of verl 0.9.1, `verl/checkpoint_engine/base.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

_Engine = TypeVar("_Engine", bound="type[CheckpointEngine]")


class CheckpointEngineRegistry:
    _registry: dict[str, type[CheckpointEngine]] = {}

    @staticmethod
    def register(backend: str) -> Callable[[_Engine], _Engine]:
        def wrapper(engine: _Engine) -> _Engine:
            CheckpointEngineRegistry._registry[backend] = engine
            return engine

        return wrapper

    @classmethod
    def get(cls, backend: str) -> type[CheckpointEngine]:
        return cls._registry[backend]

    @classmethod
    def new(cls, backend: str, *args: Any, **kwargs: Any) -> CheckpointEngine:
        return cls.get(backend)(*args, **kwargs)


class CheckpointEngine(ABC):
    wire_format = "named_tensors"

    @abstractmethod
    def prepare(self) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]: ...

    @abstractmethod
    def init_process_group(self, **kwargs: Any) -> Any: ...

    @abstractmethod
    def finalize(self) -> Any: ...

    @abstractmethod
    async def send_weights(self, weights: Any, global_steps: int | None = None) -> Any: ...

    @abstractmethod
    def receive_weights(self, global_steps: int | None = None) -> Any: ...
