"""Weights in versions, and their description (D215), without torch and without a network."""

import json
import random
import unittest
from unittest import mock

import fakes

fakes.install()

from srdma import _metadata, _tensors, errors
from srdma._metadata import InvalidWeights, Metadata, Piece, decode, encode

TEXT = b'{"format":1,"bucket":3,"is_last":true,"step":7,"tensors":[["a.b","float32",[2,3],0,24],["c","bool",[],0,1]]}'
FOUND = Metadata(3, True, 7, (Piece("a.b", "float32", (2, 3), 0, 24), Piece("c", "bool", (), 0, 1)))


class Description(unittest.TestCase):
    def test_the_form(self):
        self.assertEqual(encode(FOUND), TEXT)
        self.assertEqual(decode(memoryview(TEXT)), FOUND)
        self.assertEqual([piece.tensor_octets for piece in FOUND.pieces], [24, 1])

    def test_others_are_refused_by_name(self):
        def changed(**fields):
            return json.dumps({**json.loads(TEXT), **fields}).encode()

        def tensor(*fields):
            return changed(tensors=[list(fields)])

        for octets, text in [
            (b"", "no JSON"),
            (b"\xff\xfe", "no JSON"),
            (b"[" * 100_000, "no JSON"),
            (b'{"format":' + b"1" * 5000 + b"}", "no JSON"),
            (b"7", "other fields"),
            (changed(more=1), "other fields"),
            (TEXT.replace(b'"step":7,', b""), "other fields"),
            (changed(format=2), "format 2"),
            (changed(bucket=True), "the bucket"),
            (changed(bucket=-1), "the bucket"),
            (changed(bucket=1.5), "the bucket"),
            (changed(step="7"), "the step"),
            (changed(is_last=1), "is_last"),
            (changed(tensors={}), "the tensors"),
            (changed(tensors=[[]] * (_metadata.MOST_TENSORS + 1)), "at most 16384"),
            (changed(tensors=[7]), "tensor 0 is no list of five"),
            (tensor("", "bool", [], 0, 1), "the name of tensor 0"),
            (tensor("\ud800", "bool", [], 0, 1), "the name of tensor 0"),
            (tensor("n" * 1025, "bool", [], 0, 1), "the name of tensor 0"),
            (tensor(7, "bool", [], 0, 1), "the name of tensor 0"),
            (tensor("a", "complex64", [], 0, 8), "unknown type 'complex64'"),
            (tensor("a", ["bool"], [], 0, 1), "unknown type"),
            (tensor("a", "bool", 1, 0, 1), "the shape"),
            (tensor("a", "bool", [1] * 65, 0, 1), "the shape"),
            (tensor("a", "bool", [-1], 0, 1), "a dimension"),
            (tensor("a", "bool", [True], 0, 1), "a dimension"),
            (tensor("a", "bool", [1 << 30, 1 << 30], 0, 1), "the number of octets"),
            (tensor("a", "bool", [3], 0, 4), "has 3 octets, not 4 from 0 on"),
            (tensor("a", "bool", [3], 2, 2), "has 3 octets, not 2 from 2 on"),
            (tensor("a", "bool", [3], -1, 2), "the first octet"),
            (b" " * (_metadata.MOST_METADATA_OCTETS + 1), "1048577 octets"),
        ]:
            with self.subTest(octets=octets[:80]), self.assertRaisesRegex(InvalidWeights, text):
                decode(octets)

    def test_no_octets_do_anything_else(self):
        generator = random.Random(7)
        for _ in range(20_000):
            octets = bytearray(TEXT)
            for _ in range(generator.randint(1, 4)):
                octets[generator.randrange(len(octets))] = generator.choice(b'0123456789-,[]{}":eEtrue\x00\xff')
            try:
                found = decode(bytes(octets))
            except InvalidWeights:
                continue
            self.assertEqual(decode(encode(found)), found)


class Transfers(unittest.TestCase):
    def setUp(self):
        self.network = fakes.Network()

    def sender(self, bucket_octets=128, timeout=0.0, **options):
        return _tensors.Sender(self.network, bucket_octets, timeout, **options)

    def receive(self, group=1, step=None):
        collector = _tensors.Collector(self.network, group, 1.0)
        transfer = _tensors.Transfer("cpu", step)
        return [pair for tensors in collector.receive(transfer) for pair in tensors]

    def test_all_arrive_in_buckets(self):
        given = [
            ("one", fakes.tensor("float32", 3, 5)),
            ("long", fakes.tensor("bfloat16", 25, 7)),
            ("empty", fakes.tensor("float32", 0, 4)),
            ("scalar", fakes.tensor("int64")),
            ("mask", fakes.tensor("bool", 100)),
        ]
        sender = self.sender()
        sender.send(given, step=5)
        source = self.network.groups[1]
        self.assertEqual(source.slot_octets, _metadata.MOST_METADATA_OCTETS + 128)
        described = [decode(version["metadata"]) for version in source.versions]
        pieces = [[(piece.name, piece.first, piece.octets) for piece in found.pieces] for found in described]
        self.assertEqual(
            pieces,
            [
                [("one", 0, 60)],
                [("long", 0, 128)],
                [("long", 128, 128)],
                [("long", 256, 94), ("empty", 0, 0)],
                [("scalar", 0, 8)],
                [("mask", 0, 100)],
            ],
        )
        heads = [(found.bucket, found.is_last, found.step) for found in described]
        self.assertEqual(heads, [(place, place == 5, 5) for place in range(6)])
        versions = list(source.versions)
        found = self.receive(step=5)
        self.assertEqual([name for name, _ in found], [name for name, _ in given])
        for (_, tensor), (name, expected) in zip(found, given):
            self.assertEqual((tensor.dtype, tensor.shape), (expected.dtype, expected.shape), name)
            self.assertEqual(tensor.memory, expected.memory, name)
        self.assertTrue(all(version.is_released for version in versions))
        # A second one by the same group, without a tensor.
        sender.send([], step=6)
        self.assertEqual(self.receive(step=6), [])
        self.assertFalse(source.is_closed)

    def test_memory_of_a_tensor_may_be_used_for_the_next(self):
        memory = fakes.tensor("uint8", 64)

        def weights():
            for value in range(5):
                memory.memory[:] = bytes([value]) * 64
                yield str(value), memory

        self.sender().send(weights())
        found = [bytes(tensor.memory) for _, tensor in self.receive()]
        self.assertEqual(found, [bytes([value]) * 64 for value in range(5)])

    def test_names_and_numbers_of_tensors_fill_a_bucket_too(self):
        long = [(f"{place}{'n' * 1000}", fakes.tensor("bool", 1)) for place in range(1100)]
        self.sender(bucket_octets=1 << 20).send(long)
        self.assertEqual(len(self.network.groups[1].versions), 2)
        self.assertEqual([name for name, _ in self.receive()], [name for name, _ in long])
        with mock.patch.object(_metadata, "MOST_TENSORS", 10):
            self.sender(bucket_octets=1 << 20).send(long[:25])
        self.assertEqual(len(self.network.groups[2].versions), 3)

    def test_what_cannot_be_sent_ends_the_transfer(self):
        sparse, meta, shard = (fakes.tensor("bool", 1) for _ in range(3))
        sparse.layout = "sparse_coo"
        meta.device = fakes.TorchDevice("meta")
        shard.full_tensor = None
        for name, tensor, text in [
            ("a", sparse, "layout sparse_coo"),
            ("a", meta, "on .*no octets"),
            ("a", shard, "full_tensor"),
            ("a", fakes.tensor("complex64", 1), "unknown type 'complex64'"),
            ("n" * 1025, fakes.tensor("bool", 1), "the name"),
        ]:
            sender = self.sender()
            with self.subTest(text=text), self.assertRaisesRegex(InvalidWeights, text):
                sender.send([(name, tensor)])
            self.assertTrue(self.network.groups[sender.group].is_closed)
        with self.assertRaisesRegex(InvalidWeights, "the step"):
            self.sender().send([], step=-1)
        for octets in (63, (1 << 40) + 1):
            with self.assertRaisesRegex(InvalidWeights, f"buckets of {octets}"):
                self.sender(bucket_octets=octets)

    def test_failures_close_the_group(self):
        def weights():
            yield "a", fakes.tensor("bool", 1)
            raise KeyError("of the trainer")

        sender = self.sender()
        with self.assertRaises(KeyError):
            sender.send(weights())
        self.assertTrue(self.network.groups[1].is_closed)
        with self.assertRaises(errors.GroupClosed):
            self.receive()
        with self.assertRaises(errors.NotReady):
            self.sender().commit(10)
        self.assertTrue(self.network.groups[2].is_closed)

    def test_a_receiver_that_takes_nothing_ends_the_transfer_in_time(self):
        self.network.taken = 1
        sender = self.sender()
        with self.assertRaisesRegex(errors.Timeout, r"bucket of weights \(version 2 of group 1\) within 0 s"):
            sender.send([(str(place), fakes.tensor("bool", 128)) for place in range(5)])
        # The third one was not published before the first was taken.
        self.assertEqual(self.network.groups[1].newest, 3)
        self.assertTrue(self.network.groups[1].is_closed)

        def fail():
            raise KeyError("of a worker")

        sender = self.sender(timeout=60.0)
        sender.check = fail
        with self.assertRaises(KeyError):
            sender.send([(str(place), fakes.tensor("bool", 128)) for place in range(5)])
        with self.assertRaisesRegex(errors.Timeout, "no bucket of weights came by group 3 within 6 s"):
            self.sender()
            self.receive(group=3)

    def test_a_proxy_address_in_use_is_waited_for(self):
        used = errors.Controller("the controller: proxy 2001:db8::1 is that of group 1 (address-in-use, 409)")
        self.network.refusals = [used, used]
        self.sender(timeout=60.0, proxy="2001:db8::1")
        self.assertEqual(len(self.network.calls), 3)
        for timeout, proxy, refusal in [(0.0, "::1", used), (60.0, None, used), (60.0, "::1", errors.Controller("no"))]:
            self.network.refusals = [refusal] * 9
            with self.assertRaises(errors.Controller):
                self.sender(timeout=timeout, proxy=proxy)

    def refuses(self, text, *versions, step=None):
        source = self.network.create_group(slot_octets=1 << 30)
        for metadata, buffers in versions:
            named = [(str(place), octets) for place, octets in enumerate(buffers)]
            head = [] if metadata is None else [("metadata", encode(metadata))]
            source.publish(source.newest + 1, [*head, *named])
        held = list(source.versions)
        with self.subTest(text=text), self.assertRaisesRegex(InvalidWeights, text):
            self.receive(source.group, step)
        self.assertTrue(all(version.is_released for version in held[: len(held) - len(source.versions)]))

    def test_what_does_not_fit_is_refused_by_name(self):
        whole = Piece("a", "bool", (4,), 0, 4)
        first, second = Piece("a", "bool", (4,), 0, 2), Piece("a", "bool", (4,), 2, 2)
        good = Metadata(0, True, 7, (whole,))
        self.refuses("no metadata", (None, [b"abcd"]))
        self.refuses("0 buffers of 1 tensors", (good, []))
        self.refuses("2 buffers of 1 tensors", (good, [b"abcd", b""]))
        self.refuses("a buffer of 3 octets, not 4", (good, [b"abc"]))
        self.refuses("bucket 1 of the weights has come, the next one is 0", (Metadata(1, True, 7, ()), []))
        self.refuses("of step 7, not of step 8", (good, [b"abcd"]), step=8)
        self.refuses("of step None, not of step 8", (Metadata(0, True, None, ()), []), step=8)
        self.refuses("begins at octet 2", (Metadata(0, True, 7, (second,)), [b"cd"]))
        self.refuses("in the middle of tensor 'a'", (Metadata(0, True, 7, (first,)), [b"ab"]))
        self.refuses("'a' ends at octet 2, and 'a' follows", (Metadata(0, True, 7, (first, first)), [b"ab", b"ab"]))
        other = Piece("b", "bool", (4,), 2, 2)
        self.refuses("'a' ends at octet 2, and 'b' follows", (Metadata(0, True, 7, (first, other)), [b"ab", b"cd"]))
        none = Piece("a", "bool", (4,), 0, 0)
        self.refuses("a piece without octets", (Metadata(0, True, 7, (none,)), [b""]))
        new = Piece("a", "float8_e5m2", (), 0, 1)
        self.refuses("torch 0 has no type float8_e5m2", (Metadata(0, True, 7, (new,)), [b"a"]))
        source = self.network.create_group(slot_octets=1 << 30)
        large = Metadata(0, True, 7, (Piece("a", "bool", (1 << 40,), 0, 1),))
        source.publish(1, [("metadata", encode(large)), ("0", b"a")])
        with self.assertRaisesRegex(errors.NoMemory, "1099511627776 octets"):
            self.receive(source.group)

    def test_a_host_is_one_of_its_processes(self):
        self.assertEqual(_tensors.host(), _tensors.host())
        with mock.patch("os.geteuid", return_value=12345):
            self.assertTrue(_tensors.host().endswith("-12345"))


if __name__ == "__main__":
    unittest.main()
