"""Captures that a program makes, and those of testdata/golden: what captures.py and isis.py have in common."""

import argparse
import pathlib

from scapy.utils import PcapWriter, RawPcapReader

GOLDEN = pathlib.Path(__file__).parents[2] / "testdata" / "golden"


def differences(name, made):
    """Texts for frames that are not those of the capture in the repository."""
    stored = [octets for octets, _ in RawPcapReader(str(GOLDEN / name))]
    if len(stored) != len(made):
        yield f"{name}: {len(made)} frames, {len(stored)} in the repository"
    for number, (own, other) in enumerate(zip(made, stored), 1):
        if own != other:
            yield f"{name}: frame {number} differs:\n  made   {own.hex()}\n  stored {other.hex()}"


def run(description, captures):
    """Compares or writes captures, functions that return frames by the names of files; the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--check", action="store_true")
    which.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY")
    arguments = parser.parse_args()
    found = []
    for name, make in captures.items():
        made = make()
        if arguments.check:
            found += differences(name, made)
            continue
        with PcapWriter(str(arguments.out / name), linktype=1) as writer:
            for frame in made:
                writer.write(frame)
    print("\n".join(found) or f"{len(captures)} captures are {'as made' if arguments.check else 'written'}")
    return 1 if found else 0
