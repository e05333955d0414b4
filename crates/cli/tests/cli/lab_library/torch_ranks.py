"""A rank of a process group of backend srdma: RANK SIZE FILE. Run by the lab test."""

import os
import sys
import time
import zlib
from datetime import timedelta

import torch
import torch.distributed as dist

import srdma.torch
from srdma import errors

RANK, SIZE, FILE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
TIMEOUT = timedelta(seconds=20)


def content(number, dtype, *shape):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(shape, generator=generator).to(dtype)


def fails(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind}")


dist.init_process_group("srdma", init_method=f"file://{FILE}", rank=RANK, world_size=SIZE, timeout=TIMEOUT)
assert dist.get_backend() == "srdma"

# Longer than a slot, of several types, without elements, and a scalar.
for number, (dtype, *shape) in enumerate(
    [(torch.float32, 1300, 1000), (torch.bfloat16, 3, 5, 7), (torch.float64, 0), (torch.int64, 1), (torch.float16,)]
):
    expected = content(number, dtype, *shape)
    tensor = expected.clone() if RANK == 0 else torch.zeros(shape, dtype=dtype)
    if number % 2 == 0:
        dist.broadcast(tensor, src=0)
    else:
        work = dist.broadcast(tensor, src=0, async_op=True)
        work.wait()
    assert torch.equal(tensor, expected), (number, tensor)
    print("broadcast", number, zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().tobytes()), flush=True)

# A parameter of a module, which requires a gradient.
parameter = torch.nn.Parameter(content(9, torch.float32, 10) if RANK == 0 else torch.zeros(10))
dist.broadcast(parameter.data, src=0)
assert torch.equal(parameter.data, content(9, torch.float32, 10))

# Each rank is the source of a group, and has a part of a tensor for each other one. Longer than a slot, and shorter.
for root in range(SIZE):
    tensor = content(root, torch.float32, 1000) if RANK == root else torch.zeros(1000)
    dist.broadcast(tensor, src=root)
    assert torch.equal(tensor, content(root, torch.float32, 1000)), root
for elements in (700_000, 3, 0):
    outputs = [torch.zeros(elements) for _ in range(SIZE)]
    work = dist.all_gather(outputs, content(RANK, torch.float32, elements), async_op=True)
    work.wait()
    assert all(torch.equal(outputs[rank], content(rank, torch.float32, elements)) for rank in range(SIZE)), elements
    parts = [content(10 + rank, torch.float32, elements) for rank in range(SIZE)]
    for root in (0, 2):
        own = torch.zeros(elements)
        dist.scatter(own, parts if RANK == root else None, src=root)
        assert torch.equal(own, parts[RANK]), (elements, root)
print("all ranks", flush=True)

# Objects, which torch sends as tensors.
objects = [{"step": 7, "names": ["embed", "head"]}, None] if RANK == 0 else [None, None]
dist.broadcast_object_list(objects, src=0)
assert objects == [{"step": 7, "names": ["embed", "head"]}, None], objects
gathered = [None] * SIZE
dist.all_gather_object(gathered, "x" * (RANK + 1))
assert gathered == ["x" * (rank + 1) for rank in range(SIZE)], gathered

# What is refused by name, at the rank that asks.
fails(errors.NotContiguous, ".contiguous()", lambda: dist.broadcast(torch.zeros(4, 4).t(), src=0))
fails(srdma.torch.Unsupported, "allreduce is none of broadcast", lambda: dist.all_reduce(torch.zeros(1)))
fails(
    srdma.torch.Unsupported,
    "different types or lengths",
    lambda: dist.all_gather([torch.zeros(rank + 1) for rank in range(SIZE)], torch.zeros(1)),
)
fails(srdma.torch.Unsupported, "SRDMA_TORCH_FALLBACK=gloo", lambda: dist.reduce(torch.zeros(1), dst=0))

dist.barrier()
print("barrier", flush=True)

# A rank dies: the source learns it by the time-out, and the others at the next broadcast. None hangs.
if RANK == SIZE - 1:
    os._exit(9)
# The test says when it has.
while not os.path.exists(f"{FILE}.dead"):
    time.sleep(0.05)
tensor = content(7, torch.float32, 100) if RANK == 0 else torch.zeros(100)
begin = time.monotonic()
if RANK == 0:
    fails(errors.Timeout, "did not take version", lambda: dist.broadcast(tensor, src=0))
    assert time.monotonic() - begin >= TIMEOUT.total_seconds() - 1
else:
    dist.broadcast(tensor, src=0)
    assert torch.equal(tensor, content(7, torch.float32, 100))
    # The source closes the group at the end of the same time.
    fails((errors.GroupClosed, errors.Timeout), "", lambda: dist.broadcast(tensor, src=0))
print("done", flush=True)
