"""A process of a vLLM job: DIRECTORY NAME, where NAME is `trainer` or `worker N`. Run by the lab test."""

import os
import sys
from functools import cached_property
from types import SimpleNamespace

import torch
from job import BUCKET_OCTETS, TIMEOUT, Failed, Worker, check, fails, serve, weights
from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory
from vllm.model_executor.model_loader import mtp_validation, reload

import srdma.vllm
from srdma import errors

DIRECTORY, NAME = sys.argv[1:]
#: The model of the last worker fails in the first of these, and the worker dies in the second.
FAILING, FATAL = 4, 6
WORKERS = 3

# By the entry point, in each process, and perhaps repeatedly.
srdma.vllm.register()
srdma.vllm.register()


class Source(WeightSource):
    step = 0

    @cached_property
    def metadata(self):
        return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in weights(self.step)]

    def iter_full(self):
        return weights(self.step)


class Model:
    def __init__(self, is_last):
        self.is_last, self.updates, self.loaded = is_last, 0, {}

    def load_weights(self, pairs):
        assert mtp_validation.is_disabled and reload.reloading == [self]
        self.loaded.update(pairs)
        if self.is_last and self.updates == FAILING and len(self.loaded) > 10:
            raise KeyError("a weight that the model does not have")
        if self.is_last and self.updates == FATAL and len(self.loaded) > 10:
            os._exit(9)


def work():
    model = Model(NAME == f"worker {WORKERS - 1}")
    config = SimpleNamespace(parallel_config=None, model_config=None)
    given = SimpleNamespace(backend="srdma")
    engine = WeightTransferEngineFactory.create_engine(given, config, torch.device("cpu"), model)

    def start_weight_update():
        reload.reloading.clear()
        model.updates += 1
        model.loaded = {}
        engine.start_weight_update()

    def finish_weight_update():
        engine.finish_weight_update()
        check(model.updates, model.loaded)

    serve(
        DIRECTORY,
        NAME,
        {
            "init_weight_transfer_engine": lambda info: engine.init_transfer_engine(engine.parse_init_info(info)),
            "start_weight_update": start_weight_update,
            "update_weights": lambda info: engine.update_weights(info),
            "finish_weight_update": finish_weight_update,
        },
    )
    engine.shutdown()


class ToWorkers:
    """The client of a trainer: each call goes to all workers, and raises when each has answered or has failed."""

    def __init__(self):
        self.workers = [Worker(DIRECTORY, f"worker {place}") for place in range(WORKERS)]

    def call(self, method, **keywords):
        waits = [worker.call(method, keywords) for worker in self.workers]
        failures = []
        for wait in waits:
            try:
                wait()
            except Failed as error:
                failures.append(str(error))
        if failures:
            raise Failed("; ".join(failures))

    def init_weight_transfer_engine(self, init_info):
        self.call("init_weight_transfer_engine", info=init_info)

    def start_weight_update(self):
        self.call("start_weight_update")

    def update_weights(self, update_info):
        # The last one first: in vLLM any worker that fails ends the call.
        waits = [(worker, worker.call("update_weights", {"info": update_info})) for worker in self.workers]
        self.failures = []
        for worker, wait in reversed(waits):
            try:
                wait()
            except Failed as error:
                self.failures.append((worker.name, str(error)))
                if len(self.failures) == 1:
                    self.pending = waits[: self.workers.index(worker)]
                    raise

    def finish_weight_update(self, weight_version=None):
        self.call("finish_weight_update")

    def others(self):
        """What the others say, after one has failed."""
        return [str(wait_failed(wait)) for _, wait in self.pending]


def wait_failed(wait):
    try:
        wait()
    except Failed as error:
        return error
    raise AssertionError("no failure")


def train():
    client, source = ToWorkers(), Source()

    def connect(rank=0):
        info = srdma.vllm.TrainerInit(BUCKET_OCTETS, TIMEOUT, rank=rank)
        return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)

    trainer = connect()
    # Another trainer takes part in making weights only.
    other = connect(rank=1)
    for source.step in range(1, FAILING):
        trainer.send_weights()
        other.send_weights()
        print("step", source.step, flush=True)

    source.step = FAILING
    # At once, not by the time-out of the transfer, which would be the error.
    fails(Failed, "a weight that the model does not have", trainer.send_weights)
    assert all("GroupClosed" in text for text in client.others()), client.pending
    fails(errors.Closed, "trainer_init makes another one", trainer.send_weights)
    print("failed", flush=True)

    trainer = connect()
    source.step = FAILING + 1
    trainer.send_weights()
    source.step = FATAL
    fails(Failed, f"worker {WORKERS - 1} has died", trainer.send_weights)
    assert all("GroupClosed" in text for text in client.others()), client.pending
    print("died", flush=True)
    client.workers.pop()
    client.call("end")


train() if NAME == "trainer" else work()
print("done", flush=True)
