"""A rank of a group by which sglang gets weights: RANK SIZE DIRECTORY. Run by the lab test.

The order of calls is that of sglang 0.5.23: `init_custom_process_group` of `srt/utils/common.py`, and the broadcasts of
`srt/model_executor/model_runner_components/weight_updater.py`.
"""

import inspect
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from job import TIMEOUT, check, weights
from torch.distributed import distributed_c10d

if torch.__version__.startswith("1."):
    # torch 2.14 finds the backend by the entry point.
    import srdma.torch  # noqa: F401

RANK, SIZE, DIRECTORY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
#: S1, the trainer's host.
MASTER = "tcp://[2001:db8:aa::1]:29500"


def init_custom_process_group(backend, init_method, world_size, rank, group_name, timeout):
    backend = dist.Backend(backend)
    store, rank, world_size = next(dist.rendezvous(init_method, rank, world_size, timeout=timeout))
    store.set_timeout(timeout)
    store = dist.PrefixStore(group_name, store)
    helper = distributed_c10d._new_process_group_helper
    has_new_name = "backend_options" in inspect.signature(helper).parameters
    options = {"backend_options" if has_new_name else "pg_options": None}
    group = helper(world_size, rank, [], backend, store, group_name=group_name, timeout=timeout, **options)
    group = group[0] if isinstance(group, tuple) else group
    ranks = {place: place for place in range(world_size)}
    if hasattr(distributed_c10d, "_world"):
        distributed_c10d._world.pg_group_ranks[group] = ranks
    else:
        distributed_c10d._pg_group_ranks[group] = ranks
    return group


# The group of the server, or of the trainer, itself.
dist.init_process_group("gloo", init_method=f"file://{DIRECTORY}/default {RANK}", rank=0, world_size=1)
timeout = timedelta(seconds=TIMEOUT)
group = init_custom_process_group("srdma", MASTER, SIZE, RANK, "weight_update_group", timeout)
for step in (1, 2, 3):
    found, handles = {}, []
    for name, tensor in weights(step):
        # sglang's trainers send contiguous tensors.
        weight = tensor.contiguous() if RANK == 0 else torch.empty(tensor.shape, dtype=tensor.dtype)
        handles.append(dist.broadcast(weight, src=0, group=group, async_op=True))
        found[name] = weight
    for handle in handles:
        handle.wait()
    check(step, found)
    print("step", step, flush=True)
# load_format="flattened_bucket": all tensors in one.
flat = torch.cat([tensor.contiguous().reshape(-1).view(torch.uint8) for _, tensor in weights(4)])
bucket = flat.clone() if RANK == 0 else torch.empty_like(flat)
dist.broadcast(bucket, src=0, group=group)
assert torch.equal(bucket, flat)
dist.destroy_process_group(group)
print("done", flush=True)
