"""What a bucket of weights says about the tensors in it: its buffer `metadata`, JSON.

docs/frameworks.md has the fields.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from . import errors

FORMAT = 1
#: Octets of the metadata of a bucket, at most.
MOST_METADATA_OCTETS = 1 << 20
#: Tensors of a bucket, at most: a version has at most 65,535 buffers.
MOST_TENSORS = 1 << 14
MOST_NAME_OCTETS = 1024
#: 1 TiB.
MOST_TENSOR_OCTETS = 1 << 40
MOST_DIMENSIONS = 64
#: Octets of JSON beside the tensors, at most.
FRAME_OCTETS = 256

#: Octets of an element, by the name of the type in torch.
ELEMENT_OCTETS = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "uint16": 2,
    "int16": 2,
    "uint32": 4,
    "int32": 4,
    "uint64": 8,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
}


class InvalidWeights(errors.Error, ValueError):
    """Tensors, or the description of tensors, that are not sent or received."""


@dataclass(frozen=True)
class Piece:
    """A tensor in a bucket, or a part of one."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    #: First octet of the piece in the tensor.
    first: int
    octets: int

    @property
    def tensor_octets(self) -> int:
        return math.prod(self.shape) * ELEMENT_OCTETS[self.dtype]

    @property
    def is_whole(self) -> bool:
        return self.octets == self.tensor_octets


@dataclass(frozen=True)
class Metadata:
    """What is in a bucket."""

    #: Place of the bucket in its transfer, from 0.
    bucket: int
    is_last: bool
    #: The number that the trainer gives the weights.
    step: int | None
    pieces: tuple[Piece, ...]


def _listed(piece: Piece) -> list[Any]:
    return [piece.name, piece.dtype, list(piece.shape), piece.first, piece.octets]


def described_octets(piece: Piece) -> int:
    """Octets of the metadata that describe the piece."""
    return len(_text(_listed(piece)).encode()) + 1


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode(metadata: Metadata) -> bytes:
    tensors = [_listed(piece) for piece in metadata.pieces]
    head = {"format": FORMAT, "bucket": metadata.bucket, "is_last": metadata.is_last, "step": metadata.step}
    return _text({**head, "tensors": tensors}).encode()


def _refused(why: str) -> InvalidWeights:
    return InvalidWeights(f"metadata of weights: {why}")


def _number(value: Any, what: str, most: int = MOST_TENSOR_OCTETS) -> int:
    # True is an int, too.
    if type(value) is not int or not 0 <= value <= most:
        raise _refused(f"{what} is to be a number from 0 to {most}")
    return value


def _text_octets(text: str) -> int:
    """Octets of UTF-8; 0 if it is none, as half a pair of surrogates."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return 0


def step(value: Any) -> int | None:
    """The number that a trainer gives its weights, checked."""
    return None if value is None else _number(value, "the step", 2**63 - 1)


def piece(value: Any, place: int) -> Piece:
    """A tensor of the list, checked."""
    if not isinstance(value, list) or len(value) != 5:
        raise _refused(f"tensor {place} is no list of five")
    name, dtype, shape, first, octets = value
    if not isinstance(name, str) or not 0 < _text_octets(name) <= MOST_NAME_OCTETS:
        raise _refused(f"the name of tensor {place} is no text of 1 to {MOST_NAME_OCTETS} octets")
    if not isinstance(dtype, str) or dtype not in ELEMENT_OCTETS:
        raise _refused(f"tensor {name!r} has the unknown type {str(dtype)[:64]!r}")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise _refused(f"the shape of tensor {name!r} is no list of at most {MOST_DIMENSIONS}")
    dimensions = tuple(_number(dimension, f"a dimension of tensor {name!r}") for dimension in shape)
    first = _number(first, f"the first octet of tensor {name!r}")
    octets = _number(octets, f"the length of tensor {name!r}")
    found = Piece(name, dtype, dimensions, first, octets)
    _number(found.tensor_octets, f"the number of octets of tensor {name!r}")
    if first + octets > found.tensor_octets:
        shown = "x".join(str(dimension) for dimension in dimensions) or "a scalar"
        raise _refused(
            f"tensor {name!r} of {dtype} and {shown} has {found.tensor_octets} octets, not {octets} from {first} on"
        )
    return found


def decode(octets: bytes | memoryview) -> Metadata:
    """What a bucket's `metadata` says; anything else is refused by `InvalidWeights`."""
    if len(octets) > MOST_METADATA_OCTETS:
        raise _refused(f"{len(octets)} octets, {MOST_METADATA_OCTETS} at most")
    try:
        found = json.loads(bytes(octets).decode())
    except (ValueError, RecursionError) as error:
        raise _refused(f"it is no JSON: {error}") from None
    if not isinstance(found, dict) or set(found) != {"format", "bucket", "is_last", "step", "tensors"}:
        raise _refused("other fields than format, bucket, is_last, step and tensors")
    if found["format"] != FORMAT:
        raise _refused(f"format {str(found['format'])[:64]}, this version reads {FORMAT}")
    tensors = found["tensors"]
    if not isinstance(tensors, list) or len(tensors) > MOST_TENSORS:
        raise _refused(f"the tensors are no list of at most {MOST_TENSORS}")
    if type(found["is_last"]) is not bool:
        raise _refused("is_last is to be true or false")
    bucket = _number(found["bucket"], "the bucket", 2**63 - 1)
    pieces = tuple(piece(value, place) for place, value in enumerate(tensors))
    return Metadata(bucket, found["is_last"], step(found["step"]), pieces)
