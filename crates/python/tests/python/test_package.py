"""What needs no network. The controller's address has no listener: what reaches it is `errors.Controller`."""

import array
import ctypes
import inspect
import subprocess
import sys
import unittest

import srdma
from srdma import errors

NOWHERE = "http://[::1]:1"


def device():
    return srdma.Device(NOWHERE, address="::1")


class Capsules:
    """Tensors of DLPack, made by ctypes as the header of DLPack has them."""

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device_type", ctypes.c_int32),
            ("device_number", ctypes.c_int32),
            ("dimensions", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("offset", ctypes.c_uint64),
        ]

    class Managed(ctypes.Structure):
        pass

    class Versioned(ctypes.Structure):
        pass

    Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


Capsules.Managed._fields_ = [
    ("tensor", Capsules.Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", Capsules.Deleter),
]
Capsules.Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", Capsules.Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", Capsules.Tensor),
]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class FakeTensor:
    """A tensor of 16-bit elements."""

    def __init__(self, shape, strides=None, device=1, versioned=True, major=1, bits=16):
        self.deleted = 0
        self.octets = ctypes.create_string_buffer(4096)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.device, self.versioned, self.major, self.bits = device, versioned, major, bits

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, *, max_version=None):
        if self.versioned and max_version is None:
            raise AssertionError("version 1 is asked for first")

        def delete(_):
            self.deleted += 1

        self.deleter = Capsules.Deleter(delete)
        tensor = Capsules.Tensor(
            ctypes.addressof(self.octets), self.device, 0, len(self.shape), 4, self.bits, 1, self.shape, self.strides, 0
        )
        if self.versioned:
            self.managed = Capsules.Versioned(self.major, 0, None, self.deleter, 0, tensor)
            name = b"dltensor_versioned"
        else:
            self.managed = Capsules.Managed(tensor, None, self.deleter)
            name = b"dltensor"
        return new_capsule(ctypes.addressof(self.managed), name, None)


class OldTensor(FakeTensor):
    """A producer that knows no versions."""

    def __init__(self, shape):
        super().__init__(shape, versioned=False)

    def __dlpack__(self):
        return super().__dlpack__()


class Buffers(unittest.TestCase):
    """`create_group` looks at the buffers before it asks the controller."""

    def create(self, buffers):
        device().create_group(buffers=buffers)

    def accepts(self, *objects):
        for found in objects:
            with self.subTest(kind=type(found)), self.assertRaises(errors.Controller):
                self.create({"a": found})

    def refuses(self, error, text, found):
        with self.subTest(kind=type(found)), self.assertRaisesRegex(error, text):
            self.create({"a": found})

    def test_objects_with_octets_are_buffers(self):
        self.accepts(b"abc", b"", bytearray(3), array.array("d", [1.0, 2.0]), memoryview(bytes(8)).cast("H"))
        self.accepts(FakeTensor([2, 3]), FakeTensor([2, 3], [3, 1]), FakeTensor([0, 3], [7, 9]), FakeTensor([]))
        self.accepts(FakeTensor([2, 1, 3], [3, 77, 1]), OldTensor([4]), FakeTensor([4], device=3))
        with self.assertRaises(errors.Controller):
            self.create([("a", b"abc"), ("b", bytearray(7))])
        with self.assertRaises(errors.Controller):
            self.create([4096, 100])

    def test_others_are_refused_by_name(self):
        self.refuses(errors.NotContiguous, "'a'|\"a\"", memoryview(bytes(8))[::2])
        self.refuses(errors.NotContiguous, ".contiguous", FakeTensor([2, 3], [1, 2]))
        self.refuses(errors.NotContiguous, ".contiguous", FakeTensor([2, 3], [3, -1]))
        self.refuses(errors.DeviceMemory, "GPU.*DLPack device 2 0.*.cpu", FakeTensor([2], device=2))
        self.refuses(TypeError, "neither the buffer protocol nor __dlpack__", 7)
        self.refuses(TypeError, "neither", "text")
        self.refuses(BufferError, "DLPack version 2", FakeTensor([2], major=2))
        self.refuses(ValueError, "DLPack structure is invalid", FakeTensor([-1]))
        self.refuses(ValueError, "DLPack structure is invalid", FakeTensor([2**62, 2**62]))
        with self.assertRaises((TypeError, ValueError)):
            self.create({1: b"abc"})
        with self.assertRaisesRegex(ValueError, "either buffers or slot_octets"):
            device().create_group()
        with self.assertRaisesRegex(ValueError, "either buffers or slot_octets"):
            device().create_group(buffers=[1], slot_octets=1)

    def test_tensors_are_returned_once(self):
        for tensor in (FakeTensor([5]), OldTensor([5]), FakeTensor([5], [2])):
            with self.assertRaises(errors.Error):
                self.create({"a": tensor})
            self.assertEqual(tensor.deleted, 1)

    def test_a_used_capsule_is_refused(self):
        class Twice(FakeTensor):
            def __dlpack__(self, *, max_version=None):
                if not hasattr(self, "capsule"):
                    self.capsule = super().__dlpack__(max_version=max_version)
                return self.capsule

        tensor = Twice([5])
        with self.assertRaises(errors.Controller):
            self.create({"a": tensor})
        with self.assertRaisesRegex(TypeError, "no capsule of a tensor that was not used"):
            self.create({"a": tensor})
        self.assertEqual(tensor.deleted, 1)


class Errors(unittest.TestCase):
    def test_every_error_has_its_exception(self):
        defined = {name for name, found in inspect.getmembers(errors, inspect.isclass) if found.__module__ == errors.__name__}
        self.assertEqual(defined, set(srdma._native.error_names()))
        for name in defined:
            self.assertTrue(issubclass(getattr(errors, name), srdma.Error), name)
        self.assertTrue(issubclass(errors.Timeout, TimeoutError))

    def test_options_are_refused_by_name(self):
        for options, error, text in [
            ({"provider": "shm"}, errors.UnknownProvider, '"shm"'),
            ({"provider": "verbs:none0"}, errors.Verbs, "."),
            ({"token_file": "/nonexistent/token"}, errors.TokenFile, "/nonexistent/token"),
            ({"controller": "ftp://x"}, errors.Controller, "ftp://x"),
            ({"address": "192.0.2"}, ValueError, "192.0.2"),
        ]:
            with self.subTest(options=options), self.assertRaisesRegex(error, text):
                srdma.Device(**{"controller": NOWHERE, **options})
        srdma.Device(NOWHERE, address="192.0.2.1")
        for options, error, text in [
            ({"slots": 65}, errors.InvalidSlots, "65 slots"),
            ({"slot_octets": 0}, errors.InvalidSlots, "0 octets"),
            ({"digest": "md5"}, ValueError, "md5"),
            ({"on_failure": "ignore"}, ValueError, "ignore"),
            ({"path_mtu": 1500}, errors.OutOfRange, "path_mtu 1500"),
            ({"stall": -1.0}, ValueError, "stall"),
            ({"stall": float("nan")}, ValueError, "stall"),
            ({"proxy": "here"}, ValueError, "here"),
            ({"proxy": "10.255.0.1"}, errors.Controller, "::1"),
            ({}, errors.Controller, "::1"),
        ]:
            with self.subTest(options=options), self.assertRaisesRegex(error, text):
                device().create_group(**{"slot_octets": 4096, **options})
        with self.assertRaisesRegex(errors.Controller, "::1"):
            device().join(1)
        with self.assertRaisesRegex(errors.Controller, "::1"):
            device().join(1, shared=True, runtime_directory="/nonexistent/ranks")

    def test_events_are_raised_by_other_threads_as_well(self):
        import threading

        found = []

        def join():
            try:
                device().join(1)
            except errors.Controller as error:
                found.append(error)

        threads = [threading.Thread(target=join) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(found), 4)


class Interpreter(unittest.TestCase):
    def run_python(self, program):
        return subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)

    def test_the_import_brings_no_large_modules(self):
        program = "import sys; import srdma; print(sorted(set(sys.modules) & {'numpy', 'torch', 'asyncio', 'ssl'}))"
        self.assertEqual(self.run_python(program).stdout, "[]\n")

    def test_the_module_has_the_library_in_it(self):
        # So an older libsrdma beside it does not matter.
        from importlib import resources

        with resources.as_file(resources.files("srdma").joinpath("_native.abi3.so")) as module:
            dynamic = subprocess.run(["readelf", "-d", module], capture_output=True, text=True, check=True).stdout
        self.assertIn("(NEEDED)", dynamic)
        self.assertNotIn("libsrdma", dynamic.replace("libsrdma_native", ""))

    def test_typed(self):
        from importlib import resources

        self.assertTrue(resources.files("srdma").joinpath("py.typed").is_file())
        stub = resources.files("srdma").joinpath("_native.pyi").read_text()
        for kind in (srdma.Device, srdma.Source, srdma.Receiver, srdma.Version, srdma.Event):
            for name in vars(kind):
                if not name.startswith("_"):
                    self.assertIn(f" {name}(" if callable(getattr(kind, name)) else name, stub, kind)


if __name__ == "__main__":
    unittest.main()
