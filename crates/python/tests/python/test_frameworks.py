"""The adapters between stubs of the frameworks' interfaces, without torch and without a network."""

import asyncio
import importlib
import inspect
import unittest
from functools import cached_property
from importlib.metadata import entry_points
from types import SimpleNamespace
from unittest import mock

import compare_upstream
import fakes

fakes.install()

import checkpoint_engine.distributed.base
import torch
import verl.checkpoint_engine.base
from vllm.distributed.weight_transfer import base, factory
from vllm.model_executor.model_loader import mtp_validation, reload

import srdma.checkpoint_engine
import srdma.torch
import srdma.verl
import srdma.vllm
from srdma import _native, errors

WEIGHTS = [("a", fakes.tensor("float32", 3, 5)), ("b", fakes.tensor("bfloat16", 700)), ("c", fakes.tensor("bool"))]


def same(found):
    return [(name, bytes(tensor.memory)) for name, tensor in found] == [
        (name, bytes(tensor.memory)) for name, tensor in WEIGHTS
    ]


class Framework(unittest.TestCase):
    def setUp(self):
        self.network = fakes.Network()
        patch = mock.patch.object(_native, "Device", self.network.Device)
        patch.start()
        self.addCleanup(patch.stop)


class Verl(Framework):
    def new(self, **more):
        return verl.checkpoint_engine.base.CheckpointEngineRegistry.new("srdma", bucket_size=1 << 10, **more)

    def topology(self, hosts, trainers=2, group=7):
        metadata = [{"host": "t", "group": group}] + [{"host": "t", "group": None}] * (trainers - 1)
        metadata += [{"host": host, "group": None} for host in hosts]
        return srdma.verl.SrdmaCheckpointEngine.build_topology(trainers, len(hosts), metadata)

    def test_hosts_are_counted_once(self):
        trainers, rollouts = self.topology(["a", "a", "b", "a"])
        self.assertEqual(trainers, {"rank": [0, -1], "group": [7, 7], "hosts": [2, 2]})
        self.assertEqual(rollouts, {"rank": [1, 2, 3, 4], "group": [7] * 4, "hosts": [2] * 4})
        with self.assertRaisesRegex(errors.Error, "not the master"):
            self.topology(["a"], group=None)
        with self.assertRaisesRegex(errors.Error, "2 trainers and 0 rollout workers"):
            self.topology([])
        with self.assertRaisesRegex(errors.Error, "metadata of 3 workers, for 1 trainers and 3"):
            srdma.verl.SrdmaCheckpointEngine.build_topology(1, 3, [{"host": "t", "group": 7}] * 3)

    def test_an_update(self):
        trainer, other, rollout = self.new(is_master=True), self.new(is_master=False), self.new()
        made = []

        def weights():
            for pair in WEIGHTS:
                made.append(pair[0])
                yield pair

        async def asynchronous():
            for pair in weights():
                yield pair

        async def receive(step):
            return [pair async for pair in rollout.receive_weights(global_steps=step)]

        for step, given in enumerate([weights, asynchronous], 1):
            metadata = [engine.prepare() for engine in (trainer, other, rollout)]
            self.assertEqual([found["group"] for found in metadata], [step, None, None])
            of_trainers, of_rollouts = type(trainer).build_topology(2, 1, metadata)
            rollout.init_process_group(**{name: values[0] for name, values in of_rollouts.items()})
            for place, engine in enumerate((trainer, other)):
                engine.init_process_group(**{name: values[place] for name, values in of_trainers.items()})
            source = self.network.groups[step]
            self.assertEqual(source.receivers, 1)
            # Each trainer has made each weight.
            made.clear()
            asyncio.run(trainer.send_weights(given(), global_steps=step))
            asyncio.run(other.send_weights(given(), global_steps=step))
            self.assertEqual(made, ["a", "b", "c"] * 2)
            self.assertGreater(source.newest, 1)
            self.assertTrue(same(asyncio.run(receive(step))))
            for engine in (trainer, other, rollout):
                engine.finalize()
            self.assertTrue(source.is_closed)
        joins = [call for call in self.network.calls if call[0] == "join"]
        self.assertEqual(joins, [("join", 1, True, None), ("join", 2, True, None)])

    def test_errors_end_the_step(self):
        trainer = self.new(is_master=True, timeout=0.0, address="::3", proxy="::1", digest="crc32")
        rollout = self.new(address="::3")
        self.assertEqual(self.network.devices, [(None, None, "::3"), (None, None, None)])
        with self.assertRaisesRegex(errors.Error, "prepare was not called"):
            asyncio.run(trainer.send_weights(iter(WEIGHTS)))
        group = trainer.prepare()["group"]
        options = {"slot_octets": (1 << 20) + 1024, "on_failure": "strict", "proxy": "::1", "digest": "crc32"}
        self.assertEqual(self.network.calls, [("create_group", options)])
        rollout.init_process_group(rank=1, group=group, hosts=1)
        self.network.taken = 0
        with self.assertRaisesRegex(errors.Timeout, "did not take a bucket"):
            asyncio.run(trainer.send_weights(iter(WEIGHTS), global_steps=1))
        self.assertTrue(self.network.groups[group].is_closed)

        async def receive(step):
            async for _ in rollout.receive_weights(global_steps=step):
                pass

        with self.assertRaisesRegex(errors.Error, "of step 1, not of step 2"):
            asyncio.run(receive(2))
        self.assertTrue(rollout._collector._receiver.is_closed)
        with self.assertRaisesRegex(errors.Error, "init_process_group was not called"):
            rollout.finalize()
            asyncio.run(receive(3))
        # The next step makes another group.
        self.assertNotEqual(trainer.prepare()["group"], group)
        with self.assertRaises(errors.NotReady):
            trainer.init_process_group(rank=0, group=2, hosts=10)


class Source(base.WeightSource):
    @cached_property
    def metadata(self):
        return [base.ParamMeta(name, tensor.dtype, tensor.shape) for name, tensor in WEIGHTS]

    def iter_full(self):
        return iter(WEIGHTS)


class Vllm(Framework):
    def setUp(self):
        super().setUp()
        self.calls, self.loaded, self.failure = [], [], None
        srdma.vllm.register()
        config = SimpleNamespace(parallel_config="parallel", model_config="model")
        self.worker = factory.WeightTransferEngineFactory.create_engine(
            SimpleNamespace(backend="srdma"), config, "cpu", self
        )

    # The model.
    def load_weights(self, weights):
        self.assertTrue(mtp_validation.is_disabled)
        self.assertEqual(reload.reloading, [self])
        self.loaded.extend(weights)

    # The client.
    def init_weight_transfer_engine(self, info):
        self.calls.append(("init", info))
        self.fails_at("init")
        self.worker.init_transfer_engine(self.worker.parse_init_info(info))

    def start_weight_update(self):
        self.calls.append("start")
        self.worker.start_weight_update()

    def update_weights(self, info):
        self.calls.append(("update", info))
        self.fails_at("update")

    def finish_weight_update(self, weight_version=None):
        self.calls.append("finish")
        self.worker.update_weights({"update": self.calls[-2][1]["update"]})
        self.worker.finish_weight_update()

    def fails_at(self, place):
        if self.failure == place:
            raise KeyError("of a worker")

    def connect(self, rank=0, source=None, **more):
        info = srdma.vllm.TrainerInit(1 << 10, rank=rank, **more)
        return factory.WeightTransferTrainerFactory.trainer_init(info, client=self, source=source or Source())

    def test_vllm_finds_it_by_the_entry_point(self):
        factories = (factory.WeightTransferEngineFactory, factory.WeightTransferTrainerFactory)
        for found in factories:
            found._registry.clear()
        for found in entry_points(group="vllm.general_plugins"):
            # In each process, and repeatedly.
            found.load()()
            found.load()()
        self.assertEqual([list(found._registry) for found in factories], [["srdma"]] * 2)
        for found in factories:
            module, name = found._registry["srdma"]
            self.assertFalse(inspect.isabstract(getattr(importlib.import_module(module), name)))

    def test_updates(self):
        trainer = self.connect(controller="http://[::2]:8470", provider="udp", address="::3")
        info = {"group": 1, "timeout": 300.0, "controller": "http://[::2]:8470", "provider": "udp"}
        info["runtime_directory"] = None
        self.assertEqual(self.calls, [("init", info)])
        self.assertEqual(self.network.devices, [("http://[::2]:8470", "udp", place) for place in ("::3", None)])
        self.assertEqual(self.network.groups[1].receivers, 1)
        for update in (1, 2):
            self.calls.clear()
            self.loaded.clear()
            trainer.send_weights()
            self.assertEqual(self.calls, ["start", ("update", {"update": update}), "finish"])
            self.assertTrue(same(self.loaded))
            self.assertEqual(reload.reloading, [])
        self.worker.shutdown()
        with self.assertRaisesRegex(errors.Error, "init_transfer_engine was not called"):
            self.worker.update_weights({"update": 3})
        trainer.shutdown()
        self.assertTrue(self.network.groups[1].is_closed)

    def test_other_trainers_make_weights_only(self):
        source = Source()
        source.iter_full = mock.Mock(return_value=iter(WEIGHTS))
        self.connect(rank=3, source=source).send_weights()
        source.iter_full.assert_called_once()
        self.assertEqual((self.calls, self.network.calls), ([], []))

    def test_failures_end_the_transfer(self):
        self.failure = "init"
        with self.assertRaises(KeyError):
            self.connect()
        self.assertTrue(self.network.groups[1].is_closed)
        self.failure = "update"
        trainer = self.connect()
        with self.assertRaises(KeyError):
            trainer.send_weights()
        self.assertTrue(self.network.groups[2].is_closed)
        self.assertNotIn("finish", self.calls)
        with self.assertRaisesRegex(errors.Closed, "trainer_init"):
            trainer.send_weights()
        # The failure of a worker, while a bucket is not taken.
        self.network.taken = 0
        reload.reloading.clear()
        with self.assertRaises(KeyError):
            self.connect().send_weights()
        reload.reloading.clear()

    def test_sources_are_checked(self):
        class Local(base.WeightSource):
            metadata = []

        with self.assertRaisesRegex(errors.Error, "iter_full"):
            self.connect(source=Local())
        owned = Source()
        owned.metadata = [base.ParamMeta("a", torch.float32, (3, 5), owners=(1,))]
        with self.assertRaisesRegex(errors.Error, "'a' is not rank 0's"):
            self.connect(source=owned)
        for given, text in [
            (WEIGHTS[:2], "declares 'c', and does not yield it"),
            ([*WEIGHTS, WEIGHTS[0]], "yields 'a'.* declares nothing"),
            ([WEIGHTS[1]], "yields 'b'.* declares 'a'"),
            ([("a", fakes.tensor("float32", 5, 3))], r"yields 'a', torch.float32 \(5, 3\)"),
        ]:
            source = Source()
            source.iter_full = lambda given=given: iter(given)
            with self.subTest(text=text), self.assertRaisesRegex(errors.Error, text):
                self.connect(source=source).send_weights()
            reload.reloading.clear()


class CheckpointEngine(unittest.TestCase):
    def test_it_is_the_backend_of_the_process(self):
        base = checkpoint_engine.distributed.base
        srdma.checkpoint_engine.use()
        self.assertIsInstance(base._BACKEND_INSTANCE, srdma.checkpoint_engine.DistributedSrdma)
        self.assertFalse(base.is_initialized())
        for call in (base.barrier, lambda: base.new_group([0, 1]), lambda: base.broadcast(None)):
            with self.assertRaisesRegex(errors.Error, "the process group is not initialized"):
                call()


class Torch(unittest.TestCase):
    def register(self, backend):
        with mock.patch.object(torch.distributed, "Backend", backend):
            for found in entry_points(group="torch.distributed.backends"):
                found.load()()
                found.load()()

    def test_the_form_of_torch_2(self):
        # The import has registered it.
        self.register(fakes.Backend)
        func, extended, devices = fakes.Backend.plugins["srdma"]
        self.assertEqual((extended, devices), (False, ["cpu"]))
        self.assertEqual(list(inspect.signature(func).parameters), ["store", "rank", "size", "timeout"])

    def test_the_form_of_torch_1(self):
        self.register(fakes.OldBackend)
        self.assertEqual(fakes.OldBackend.plugins["srdma"][1:], (False,))


class Signatures(unittest.TestCase):
    """Each method takes what the interface gives it."""

    def test_methods_take_what_they_are_given(self):
        for adapter, interface in [
            (srdma.verl.SrdmaCheckpointEngine, verl.checkpoint_engine.base.CheckpointEngine),
            (srdma.vllm.SrdmaWeightTransferEngine, base.WeightTransferEngine),
            (srdma.vllm.SrdmaTrainerWeightTransferEngine, base.TrainerWeightTransferEngine),
            (srdma.checkpoint_engine.DistributedSrdma, checkpoint_engine.distributed.base.Distributed),
        ]:
            self.assertFalse(inspect.isabstract(adapter), adapter)
            for name in interface.__abstractmethods__ - {"init_process_group"}:
                with self.subTest(method=f"{adapter.__name__}.{name}"):
                    own, wanted = (inspect.signature(getattr(found, name)) for found in (adapter, interface))
                    self.assertEqual(list(own.parameters), list(wanted.parameters))

    def test_the_comparison_with_upstream_finds_what_differs(self):
        text = (compare_upstream.STUBS / "vllm/distributed/weight_transfer/base.py").read_text()
        stub = compare_upstream.definitions(text)
        for old, new, found in [
            ("def shutdown(self)", "def shutdown(self, more)", "WeightTransferEngine.shutdown(self) is (self, more)"),
            ("def shutdown(self)", "def end(self)", "WeightTransferEngine.shutdown is not in upstream"),
            ("def drain_pending", "@abstractmethod\n    def drain_pending", "only one of the two is abstract"),
            ("def drain", "@abstractmethod\n    def more(self): ...\n\n    def drain", "more is an abstract method"),
            ("    name: str\n", "    name: str\n    more: int\n", "ParamMeta.more is a field of upstream"),
            ("", "", None),
        ]:
            upstream = compare_upstream.definitions(text.replace(old, new))
            sentences = "\n".join(compare_upstream.differences(stub, upstream))
            self.assertTrue(found in sentences if found else not sentences, sentences)


if __name__ == "__main__":
    unittest.main()
