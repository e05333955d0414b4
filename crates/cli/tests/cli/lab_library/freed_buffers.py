"""Buffers that the program forgets, or wants to change, while they are published. Run by the lab test."""

import gc
import sys
import zlib

import srdma

VERSIONS, OCTETS = 6, 3_000_001


def content(version):
    return bytearray((version.to_bytes(8, "big") * (OCTETS // 8 + 1))[:OCTETS])


def send():
    with srdma.Device().create_group(slot_octets=OCTETS) as source:
        print(source.group, flush=True)
        source.commit(1)
        for version in range(1, VERSIONS + 1):
            data = content(version)
            source.publish(version, {"data": data})
            if version % 2:
                try:
                    data.clear()
                except BufferError:
                    pass
                else:
                    raise AssertionError("a buffer that is published was freed")
            del data
            gc.collect()
            # Memory that was freed would be that of these.
            _ = [bytearray(b"x" * OCTETS) for _ in range(3)]
        source.wait(VERSIONS)
        # It is the program's again.
        data = content(VERSIONS + 1)
        source.publish(VERSIONS + 1, {"data": data})
        source.wait(VERSIONS + 1)
        data.clear()


def receive(group):
    with srdma.Device().join(group) as receiver:
        for version in receiver:
            with version:
                assert zlib.crc32(version["data"]) == zlib.crc32(content(version.number)), version.number
                print("version", version.number, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        receive(int(sys.argv[1]))
    else:
        send()
