"""One source sends versions of a buffer to several receivers of a group.

    python3 broadcast.py source --proxy 2001:db8:cc::1 --receivers 2 --versions 10 --octets 4194304
    python3 broadcast.py receive 1           # the group's number, which the source prints
    python3 broadcast.py receive 1 --asyncio

The controller is that of $SRDMA_CONTROLLER, the token that of $SRDMA_TOKEN_FILE, the certificate that of $SRDMA_CA.
Both print a line for each version, with a checksum; docs/applications.md explains the calls.
"""

import argparse
import asyncio
import time
import zlib

import srdma
import srdma.aio


def say(*words):
    print(*words, flush=True)


def content(version, octets):
    return bytearray((version.to_bytes(8, "big") * (octets // 8 + 1))[:octets])


def send(arguments):
    device = srdma.Device()
    with device.create_group(slot_octets=arguments.octets, proxy=arguments.proxy, slow_after=0.2) as source:
        say("group", source.group)
        source.commit(arguments.receivers)
        for version in range(1, arguments.versions + 1):
            data = content(version, arguments.octets)
            source.publish(version, {"data": data})
            # The buffer is in use until every receiver has it.
            source.wait(version)
            say("version", version, zlib.crc32(data))
            if version == arguments.exit_at:
                # As a program that ends by an exception, with a version on its way.
                source.publish(version + 1, {"data": data})
                raise SystemExit(3)
            time.sleep(arguments.pause)
        say("statistics", source.statistics())


def receive(arguments):
    with srdma.Device().join(arguments.group) as receiver:
        for version in receiver:
            # In place; the slot is free for a later version when `version` is released.
            with version:
                say("version", version.number, zlib.crc32(version["data"]))
    say("over")


async def receive_asyncio(arguments):
    async with srdma.aio.Receiver(await asyncio.to_thread(srdma.Device().join, arguments.group)) as receiver:
        async for version in receiver:
            with version:
                say("version", version.number, zlib.crc32(version["data"]))
    say("over")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    roles = parser.add_subparsers(required=True, metavar="ROLE")
    source = roles.add_parser("source", help="create a group, and send versions")
    source.add_argument("--proxy", help="Proxy Address of the group [default: one of the tenant's pool]")
    source.add_argument("--receivers", type=int, default=1, help="receivers to wait for [default: 1]")
    source.add_argument("--versions", type=int, default=10, help="[default: 10]")
    source.add_argument("--octets", type=int, default=1 << 20, help="of a version [default: 1048576]")
    source.add_argument("--pause", type=float, default=0, help="seconds between two versions [default: 0]")
    source.add_argument("--exit-at", type=int, default=0, help="end in the middle of the version behind this one")
    source.set_defaults(run=send)
    receiver = roles.add_parser("receive", help="join a group, and take its versions")
    receiver.add_argument("group", type=int)
    receiver.add_argument("--asyncio", action="store_true", help="without a thread that waits")
    receiver.set_defaults(run=lambda given: asyncio.run(receive_asyncio(given)) if given.asyncio else receive(given))
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
