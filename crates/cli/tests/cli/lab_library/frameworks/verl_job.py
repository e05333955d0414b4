"""A process of a verl job: DIRECTORY NAME, where NAME is `manager`, `trainer N` or `rollout N`. Run by the lab test."""

import asyncio
import os
import sys
import time

from job import BUCKET_OCTETS, TIMEOUT, Failed, Worker, check, fails, reused, serve
from verl.checkpoint_engine.base import CheckpointEngineRegistry
from verl_manager import Manager

import srdma.verl

DIRECTORY, NAME = sys.argv[1:]
#: The last rollout worker dies in the middle of this step.
FATAL_STEP = 4


def engine(**more):
    # As the workers of verl do.
    # The group of a step has the Proxy Address of the one before.
    kwargs = {"timeout": TIMEOUT, "proxy": "2001:db8:cc::1"}
    return CheckpointEngineRegistry.new("srdma", **more, bucket_size=BUCKET_OCTETS, **kwargs)


def trainer(is_master):
    made = []
    found = engine(is_master=is_master)

    def produce(step):
        for pair in reused(step):
            made.append(pair[0])
            yield pair

    def update_weights(global_steps):
        begin = time.monotonic()
        asyncio.run(found.send_weights(produce(global_steps), global_steps=global_steps))
        return len(made), time.monotonic() - begin

    return found, update_weights


def rollout(dies):
    found = engine()

    async def receive(step):
        tensors = {}
        async for name, tensor in found.receive_weights(global_steps=step):
            tensors[name] = tensor
            if dies and step == FATAL_STEP and len(tensors) == 10:
                os._exit(9)
        check(step, tensors)
        return len(tensors)

    return found, lambda global_steps: asyncio.run(receive(global_steps))


if NAME == "manager":
    outcomes = []
    workers = [Worker(DIRECTORY, name) for name in ("trainer 0", "trainer 1", "rollout 0", "rollout 1", "rollout 2")]

    def call(place, method, keywords):
        wait = workers[place].call(method, keywords)

        def result():
            try:
                return wait()
            except Failed as error:
                outcomes.append((workers[place].name, str(error)))
                raise

        return result

    manager = Manager("srdma", call)
    for step in range(1, FATAL_STEP):
        manager.update_weights(2, 3, step)
        assert not outcomes, outcomes
        print("step", step, flush=True)
    begin = time.monotonic()
    fails(Failed, "did not take a bucket of weights", lambda: manager.update_weights(2, 3, FATAL_STEP))
    took = time.monotonic() - begin
    kinds = {name: text.split(":")[0] for name, text in outcomes}
    assert kinds["trainer 0"] == "Timeout" and kinds["rollout 2"] == "rollout 2 has died", outcomes
    # The group is closed when the trainer gives up; on a busy machine their own time may be up before.
    assert {kinds["rollout 0"], kinds["rollout 1"]} <= {"GroupClosed", "Timeout"} and len(kinds) == 4, outcomes
    # Time for the first buckets, and for the one that is not taken.
    assert TIMEOUT - 1 < took < 4 * TIMEOUT, took
    print("failed", flush=True)
    outcomes.clear()
    # Without the worker that has died: another group.
    workers.pop()
    manager.update_weights(2, 2, FATAL_STEP + 1)
    assert not outcomes, outcomes
    for worker in workers:
        worker.call("end", {})()
else:
    kind, place = NAME.split()
    found, update_weights = trainer(place == "0") if kind == "trainer" else rollout(place == "2")
    methods = {name: getattr(found, name) for name in ("prepare", "init_process_group", "finalize")}
    serve(DIRECTORY, NAME, {**methods, "update_weights": update_weights})
print("done", flush=True)
