"""Names and parameters of vLLM 0.33.0, `vllm/distributed/weight_transfer/base.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

TInitInfo = TypeVar("TInitInfo", bound="WeightTransferInitInfo")
TUpdateInfo = TypeVar("TUpdateInfo", bound="WeightTransferUpdateInfo")
TTrainerInitInfo = TypeVar("TTrainerInitInfo", bound="TrainerInitInfo")


@dataclass(frozen=True)
class ParamMeta:
    name: str
    dtype: Any
    shape: tuple[int, ...]
    owners: tuple[int, ...] | None = field(default=None, kw_only=True)
    mesh_shape: tuple[int, ...] | None = field(default=None, kw_only=True)
    placements: tuple[Any, ...] | None = field(default=None, kw_only=True)


class WeightSource(ABC):
    @property
    @abstractmethod
    def metadata(self) -> list[ParamMeta]: ...

    def implements_iter_full(self) -> bool:
        return type(self).iter_full is not WeightSource.iter_full

    def iter_full(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError


@dataclass
class WeightTransferInitInfo(ABC):
    pass


@dataclass
class TrainerInitInfo:
    backend: ClassVar[str]

    rank: int = field(kw_only=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        assert cls.backend

    @property
    def is_sender(self) -> bool:
        return self.rank == 0


@dataclass
class WeightTransferUpdateInfo(ABC):
    pass


class WeightTransferEngine(ABC, Generic[TInitInfo, TUpdateInfo]):
    init_info_cls: type[TInitInfo]
    update_info_cls: type[TUpdateInfo]

    supports_draft_weight_update: bool = True
    defers_processing: bool = False

    def __init__(self, config: Any, vllm_config: Any, device: Any, model: Any) -> None:
        self.config = config
        self.vllm_config = vllm_config
        self.parallel_config = vllm_config.parallel_config
        self.model_config = vllm_config.model_config
        self.device = device
        self.model = model

    def drain_pending(self) -> None: ...

    def parse_init_info(self, init_dict: dict[str, Any]) -> TInitInfo:
        return self.init_info_cls(**init_dict)

    def parse_update_info(self, update_dict: dict[str, Any]) -> TUpdateInfo:
        return self.update_info_cls(**update_dict)

    @abstractmethod
    def init_transfer_engine(self, init_info: TInitInfo) -> None: ...

    @abstractmethod
    def start_weight_update(self) -> None: ...

    @abstractmethod
    def finish_weight_update(self) -> None: ...

    def update_weights(self, update_info: dict[str, Any]) -> None:
        # Upstream waits for the device, too.
        self.receive_weights(self.parse_update_info(update_info))

    @abstractmethod
    def receive_weights(self, update_info: TUpdateInfo) -> None: ...

    @abstractmethod
    def shutdown(self) -> None: ...


class VLLMWeightSyncClient(Protocol):
    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None: ...

    def start_weight_update(self) -> None: ...

    def update_weights(self, update_info: Any) -> None: ...

    def finish_weight_update(self, weight_version: str | None = None) -> None: ...


class TrainerWeightTransferEngine(ABC, Generic[TTrainerInitInfo]):
    init_info_cls: type[TTrainerInitInfo]

    def __init__(
        self, *, client: VLLMWeightSyncClient, source: WeightSource | None = None, is_sender: bool = True, rank: int = 0
    ) -> None:
        self.is_sender = is_sender
        self.rank = rank
        self.client = client
        self.source = source

    @classmethod
    @abstractmethod
    def trainer_init(
        cls, init_info: TTrainerInitInfo, *, client: VLLMWeightSyncClient, source: WeightSource | None = None
    ) -> Self: ...

    @abstractmethod
    def send_weights(self) -> None: ...

    def shutdown(self) -> None: ...
