"""Names and parameters of verl 0.9.1, `verl/checkpoint_engine/base.py`, and the order of the manager's calls."""

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


class CheckpointEngineManager:
    """Drives an update as the manager of verl does, by `call(worker, method, keywords)` for a worker of a list, which
    returns a function that waits for the result. Trainers are the first workers."""

    def __init__(self, backend: str, call: Callable[[int, str, dict[str, Any]], Callable[[], Any]]) -> None:
        self.backend_cls = CheckpointEngineRegistry.get(backend)
        self.call = call

    def _each(self, method: str, keywords: list[dict[str, Any]]) -> list[Any]:
        results, failures = [], []
        for wait in [self.call(worker, method, found) for worker, found in enumerate(keywords)]:
            try:
                results.append(wait())
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return results

    def update_weights(self, trainers: int, rollouts: int, global_steps: int) -> None:
        workers = trainers + rollouts
        metadata = self._each("prepare", [{}] * workers)
        of_trainers, of_rollouts = self.backend_cls.build_topology(trainers, rollouts, metadata)
        assert all(len(values) == trainers for values in of_trainers.values()), of_trainers
        assert all(len(values) == rollouts for values in of_rollouts.values()), of_rollouts
        keywords = [{name: values[place] for name, values in of_trainers.items()} for place in range(trainers)]
        keywords += [{name: values[place] for name, values in of_rollouts.items()} for place in range(rollouts)]
        self._each("init_process_group", keywords)
        # At a trainer `send_weights` of its engine, at a rollout worker `receive_weights`.
        self._each("update_weights", [{"global_steps": global_steps}] * workers)
        self._each("finalize", [{}] * workers)
