"""What the jobs of the lab tests share: calls between processes by Unix sockets, weights, and expected failures."""

import time
from multiprocessing.connection import Client, Listener

import torch

#: Seconds that a bucket may take.
TIMEOUT = 15.0
PATIENCE = 60.0
BUCKET_OCTETS = 1 << 20


class Failed(Exception):
    """A call that has raised at the worker: the name of the exception, and its sentence."""


class Worker:
    """The end that calls."""

    def __init__(self, directory, name):
        self.name = name
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.connection = Client(f"{directory}/{name}.sock", "AF_UNIX")
                return
            except (FileNotFoundError, ConnectionRefusedError):
                assert time.monotonic() < end, f"{name} does not listen"
                time.sleep(0.05)

    def call(self, method, keywords):
        """Begins a call; the result is that of the function that it returns."""
        self.connection.send((method, keywords))
        return self.result

    def result(self):
        try:
            is_good, found = self.connection.recv()
        except (EOFError, ConnectionResetError):
            raise Failed(f"{self.name} has died") from None
        if not is_good:
            raise Failed(found)
        return found


def serve(directory, name, methods):
    """Answers calls until one of `end`."""
    with Listener(f"{directory}/{name}.sock", "AF_UNIX") as listener, listener.accept() as connection:
        while True:
            method, keywords = connection.recv()
            if method == "end":
                connection.send((True, None))
                return
            try:
                result = True, methods[method](**keywords)
            except Exception as error:
                result = False, f"{type(error).__name__}: {error}"
            connection.send(result)


def weights(step):
    """Tensors of a model: several types, one of more than two buckets, others without elements or dimensions."""
    generator = torch.Generator().manual_seed(step)

    def content(dtype, *shape):
        return torch.randn(shape, generator=generator).mul(100).to(dtype)

    yield "embed.weight", content(torch.float32, 700, 900)
    for layer in range(120):
        yield f"layers.{layer}.weight", content(torch.bfloat16, 170, 161)
        yield f"layers.{layer}.norm", content(torch.float16, 321)
    yield "transposed", content(torch.float32, 30, 50).t()
    yield "empty", content(torch.float64, 0, 7)
    yield "scale", content(torch.float32)
    yield "steps", content(torch.int64, 3)
    yield "mask", content(torch.float32, 77) > 0


def reused(step):
    """The same in memory that the next tensor overwrites, as of a trainer that gathers each."""
    memory = torch.empty(4 << 20, dtype=torch.uint8)
    for name, tensor in weights(step):
        octets = tensor.contiguous().reshape(-1).view(torch.uint8)
        place = memory[: len(octets)]
        place.copy_(octets)
        yield name, place.view(tensor.dtype).reshape(tensor.shape)
        memory.fill_(0xEE)


def check(step, found):
    """Exactly the weights of a step."""
    expected = dict(weights(step))
    assert list(found) == list(expected), list(found)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name


def fails(kinds, text, call):
    """The seconds after which the call has raised what it is to raise."""
    begin = time.monotonic()
    try:
        call()
    except kinds as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kinds}")
    return time.monotonic() - begin
