"""Names and parameters of vLLM 0.33.0, `vllm/model_executor/model_loader/mtp_validation.py`."""

from collections.abc import Iterator
from contextlib import contextmanager

#: Whether a part of a model may be loaded.
is_disabled = False


@contextmanager
def disable_mtp_completeness_check() -> Iterator[None]:
    global is_disabled
    is_disabled = True
    try:
        yield
    finally:
        is_disabled = False
