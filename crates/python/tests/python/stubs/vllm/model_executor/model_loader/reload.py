"""Names and parameters of vLLM 0.33.0, `vllm/model_executor/model_loader/reload`."""

from typing import Any

#: Models whose reload has begun.
reloading: list[Any] = []


def initialize_layerwise_reload(model: Any) -> None:
    reloading.append(model)


def finalize_layerwise_reload(*args: Any, **kwargs: Any) -> None:
    reloading.remove(args[0])
