"""Names and parameters of vLLM 0.33.0, `vllm/distributed/weight_transfer/factory.py`."""

from __future__ import annotations

import importlib
from typing import Any

from .base import TrainerInitInfo, TrainerWeightTransferEngine, VLLMWeightSyncClient, WeightSource, WeightTransferEngine


class WeightTransferEngineFactory:
    _registry: dict[str, Any] = {}

    @classmethod
    def register_engine(cls, name: str, module_path_or_cls: Any, class_name: str | None = None) -> None:
        if name in cls._registry:
            raise ValueError(name)
        cls._registry[name] = (module_path_or_cls, class_name)

    @classmethod
    def create_engine(cls, config: Any, vllm_config: Any, device: Any, model: Any) -> WeightTransferEngine[Any, Any]:
        module, name = cls._registry[config.backend]
        engine: WeightTransferEngine[Any, Any] = getattr(importlib.import_module(module), name)(
            config, vllm_config, device, model
        )
        return engine


class WeightTransferTrainerFactory:
    _registry: dict[str, Any] = {}

    @classmethod
    def register_engine(cls, name: str, module_path_or_cls: Any, class_name: str | None = None) -> None:
        if name in cls._registry:
            raise ValueError(name)
        cls._registry[name] = (module_path_or_cls, class_name)

    @classmethod
    def trainer_init(
        cls, init_info: TrainerInitInfo, *, client: VLLMWeightSyncClient, source: WeightSource | None = None
    ) -> TrainerWeightTransferEngine[Any]:
        module, name = cls._registry[init_info.backend]
        engine: TrainerWeightTransferEngine[Any] = getattr(importlib.import_module(module), name).trainer_init(
            init_info=init_info, client=client, source=source
        )
        return engine
