"""A rank of a job of checkpoint-engine: RANK SIZE DIRECTORY. Run by the lab test."""

import os
import socket
import sys
import time
from datetime import timedelta

RANK, SIZE, DIRECTORY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
# gloo takes the address of the host's name otherwise, which is that of all hosts of the lab.
os.environ["GLOO_SOCKET_IFNAME"] = next(name for _, name in socket.if_nameindex() if name != "lo")

import torch
import torch.distributed as dist
from checkpoint_engine.distributed import base
from job import TIMEOUT, fails, weights

import srdma.checkpoint_engine
from srdma import errors

srdma.checkpoint_engine.use()
store = dist.FileStore(f"{DIRECTORY}/store", SIZE)


def bucket(number):
    return torch.cat([tensor.contiguous().reshape(-1).view(torch.uint8) for _, tensor in weights(number)])


def begin(number):
    """As a ParameterServer that makes its process group."""
    prefix = dist.PrefixStore(f"prefix-{number}", store)
    base.init_process_group(rank=RANK, world_size=SIZE, store=prefix, backend="nccl", timeout=timedelta(seconds=TIMEOUT))


assert not base.is_initialized()
fails(errors.Error, "not initialized", base.barrier)
for update in (1, 2):
    begin(update)
    assert base.is_initialized()
    gathered = [None] * SIZE
    base.all_gather_object(gathered, {"rank": RANK, "names": ["a"] * RANK})
    assert gathered == [{"rank": rank, "names": ["a"] * rank} for rank in range(SIZE)], gathered
    free = torch.tensor([100 - RANK, -RANK])
    base.all_reduce(free, op=dist.ReduceOp.MIN)
    assert free.tolist() == [100 - SIZE + 1, -SIZE + 1], free
    for number, sender in enumerate([0, 1, 2, 0]):
        expected = bucket(number)
        tensor = expected.clone() if RANK == sender else torch.zeros_like(expected)
        base.broadcast(tensor, src=sender)
        assert torch.equal(tensor, expected), number
        code = torch.zeros((), dtype=torch.int64)
        base.all_reduce(code, op=dist.ReduceOp.SUM)
        assert code.item() == 0
    part = base.new_group([1, 0])
    if RANK < 2:
        one = torch.ones(3)
        base.all_reduce(one, op=dist.ReduceOp.SUM, group=part)
        assert one.tolist() == [2, 2, 2], one
        base.broadcast(one.fill_(RANK), src=1, group=part)
        assert one.tolist() == [1, 1, 1], one
        base.barrier(group=part)
        base.destroy_process_group(part)
    else:
        assert part is None
    base.barrier()
    base.destroy_process_group()
    assert not base.is_initialized()
    print("update", update, flush=True)

begin(3)
base.barrier()
tensor = torch.full((100,), 7.0) if RANK == 0 else torch.zeros(100)
base.broadcast(tensor, src=0)
# A rank dies: the one that broadcasts learns it by the time-out, and the other at its next collective.
if RANK == SIZE - 1:
    os._exit(9)
while not os.path.exists(f"{DIRECTORY}/dead"):
    time.sleep(0.05)
if RANK == 0:
    took = fails(errors.Timeout, "did not take version", lambda: base.broadcast(tensor, src=0))
else:
    base.broadcast(tensor, src=0)
    took = fails((errors.GroupClosed, errors.Timeout), "", lambda: base.broadcast(tensor, src=0))
assert took < 4 * TIMEOUT, took
took = fails(errors.Error, "gloo", base.barrier)
assert took < 4 * TIMEOUT, took
print("done", flush=True)
