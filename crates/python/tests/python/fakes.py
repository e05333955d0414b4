"""As much of torch as the adapters use, and a network in memory: tests of the fast tier have neither."""

import sys
import types
from collections import deque

from srdma import errors

OCTETS = {"uint8": 1, "bool": 1, "bfloat16": 2, "float32": 4, "int64": 8, "complex64": 8}


class Dtype:
    def __init__(self, name):
        self.name, self.octets = name, OCTETS[name]

    def __str__(self):
        return f"torch.{self.name}"


class TorchDevice:
    def __init__(self, kind):
        self.type = kind


def product(shape):
    result = 1
    for dimension in shape:
        result *= dimension
    return result


class Tensor:
    """Elements one behind the other in `memory`."""

    layout = "strided"

    def __init__(self, memory, dtype, shape, device="cpu"):
        self.memory, self.dtype, self.shape, self.device = memoryview(memory), dtype, tuple(shape), TorchDevice(device)
        assert len(self.memory) == product(self.shape) * dtype.octets

    def detach(self):
        return self

    contiguous = detach

    def reshape(self, size):
        assert size == -1
        return Tensor(self.memory, self.dtype, [product(self.shape)])

    def view(self, dtype):
        return Tensor(self.memory, dtype, [len(self.memory) // dtype.octets])

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, place):
        assert len(self.shape) == 1 and self.dtype.octets == 1
        octets = self.memory[place]
        return Tensor(octets, self.dtype, [len(octets)])

    def copy_(self, other):
        self.memory[:] = other.memory


def empty(shape, dtype, device="cpu", pin_memory=False):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if product(shape) * dtype.octets > 1 << 30:
        raise RuntimeError("not enough memory")
    return Tensor(bytearray(product(shape) * dtype.octets), dtype, shape, device)


def tensor(dtype, *shape, seed=1):
    """A tensor with octets that depend on the seed."""
    kind = getattr(sys.modules["torch"], dtype)
    octets = product(shape) * kind.octets
    return Tensor(bytearray((seed * 31 + place * 7) % 251 for place in range(octets)), kind, shape)


class Backend:
    """`register_backend` as of torch 2.14."""

    plugins = {}

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        assert name not in cls.plugins
        setattr(cls, name.upper(), name)
        cls.plugins[name] = (func, extended_api, devices)


class OldBackend:
    """As of torch 1.13."""

    plugins = {}

    @classmethod
    def register_backend(cls, name, func, extended_api=False):
        assert name not in cls.plugins
        setattr(cls, name.upper(), name)
        cls.plugins[name] = (func, extended_api)


class ProcessGroup:
    def __init__(self, rank, size):
        self._place = rank, size

    def rank(self):
        return self._place[0]

    def size(self):
        return self._place[1]


def install():
    """Makes this the module `torch` of the process."""
    torch, distributed = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    for name in OCTETS:
        setattr(torch, name, Dtype(name))
    torch.__version__, torch.strided, torch.Tensor, torch.device = "0", "strided", Tensor, TorchDevice
    torch.empty = empty
    torch.frombuffer = lambda octets, dtype: Tensor(octets, dtype, [len(octets)])
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)
    torch.distributed = distributed
    distributed.Backend, distributed.ProcessGroup = Backend, ProcessGroup
    distributed.Store = distributed.PrefixStore = distributed.ProcessGroupGloo = object
    distributed.ReduceOp = types.SimpleNamespace(SUM="sum")
    sys.modules.update({"torch": torch, "torch.distributed": distributed})


class Version:
    def __init__(self, number, buffers):
        self.number, self.buffers, self.is_released = number, buffers, False

    def keys(self):
        return list(self.buffers)

    def __len__(self):
        return len(self.buffers)

    def __contains__(self, name):
        return name in self.buffers

    def __getitem__(self, name):
        return memoryview(self.buffers[name]).toreadonly()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_released = True


class Network:
    """Groups in memory, whose receivers have any number of slots, and what was asked of them."""

    def __init__(self):
        self.groups, self.calls, self.devices = {}, [], []
        #: Versions that are published at once; a wait for a later one is in vain.
        self.taken = 1 << 30
        #: Refusals of `create_group` to come.
        self.refusals = []

    def Device(self, controller=None, *, provider=None, address=None):
        self.devices.append((controller, provider, address))
        return self

    def create_group(self, **options):
        self.calls.append(("create_group", options))
        if self.refusals:
            raise self.refusals.pop()
        source = Source(self, len(self.groups) + 1, options["slot_octets"])
        self.groups[source.group] = source
        return source

    def join(self, group, *, shared, runtime_directory):
        self.calls.append(("join", group, shared, runtime_directory))
        return Receiver(self.groups[group])


class Source:
    def __init__(self, network, group, slot_octets):
        self.network, self.group, self.slot_octets = network, group, slot_octets
        self.versions, self.is_closed, self.receivers, self.newest = deque(), False, None, 0

    def commit(self, receivers, timeout):
        if receivers > 9:
            raise errors.NotReady(f"{receivers} receivers")
        self.receivers = receivers

    def publish(self, number, buffers):
        assert number == self.newest + 1 and not self.is_closed
        found = {name: bytes(value) if isinstance(value, bytes) else bytes(value.memory) for name, value in buffers}
        assert len(found) == len(buffers)
        # As the library lays buffers out.
        end = 0
        for octets in found.values():
            end = -(-end // 64) * 64 + len(octets)
        assert end <= self.slot_octets, (end, self.slot_octets)
        self.newest = number
        self.versions.append(Version(number, found))

    def wait(self, number, timeout):
        assert 0 < number <= self.newest
        if number > self.network.taken:
            raise errors.Timeout("not in time")

    def close(self):
        self.is_closed = True


class Receiver:
    def __init__(self, source):
        self.source, self.group, self.is_closed = source, source.group, False

    def next_version(self, timeout):
        if self.source.versions:
            return self.source.versions.popleft()
        raise errors.GroupClosed("the group is closed") if self.source.is_closed else errors.Timeout("not in time")

    def close(self):
        self.is_closed = True
