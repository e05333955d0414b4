"""Files that a program makes, and those of the repository: what the generators of testdata have in common.

Captures are compared frame by frame, since the times in them are those of their making. Files whose times are given by
their program are compared octet by octet.
"""

import argparse
import pathlib
import tempfile

TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "testdata"
GOLDEN = TESTDATA / "golden"


def asked(description):
    """The arguments of a generator: a directory to write to, or none when files are compared."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--check", action="store_true")
    which.add_argument("--out", type=pathlib.Path, metavar="DIRECTORY")
    return parser.parse_args()


def reported(found, count, noun, is_check):
    """Prints what differs, or how many are as they should be; the exit code."""
    verb = "are" if count != 1 else "is"
    plural = "s" if count != 1 else ""
    print("\n".join(found) or f"{count} {noun}{plural} {verb} {'as made' if is_check else 'written'}")
    return 1 if found else 0


def differences(path, made):
    """Texts for frames that are not those of the capture in the repository."""
    from scapy.utils import RawPcapReader

    name, stored = path.name, [octets for octets, _ in RawPcapReader(str(path))]
    if len(stored) != len(made):
        yield f"{name}: {len(made)} frames, {len(stored)} in the repository"
    for number, (own, other) in enumerate(zip(made, stored), 1):
        if own != other:
            yield f"{name}: frame {number} differs:\n  made   {own.hex()}\n  stored {other.hex()}"


def run(description, captures, folder=GOLDEN):
    """Compares or writes captures, functions that return frames by the names of files; the exit code."""
    from scapy.utils import PcapWriter

    arguments = asked(description)
    found = []
    for name, make in captures.items():
        made = make()
        if arguments.check:
            found += differences(folder / name, made)
            continue
        with PcapWriter(str(arguments.out / name), linktype=1) as writer:
            for frame in made:
                writer.write(frame)
    return reported(found, len(captures), "capture", arguments.check)


def different_octets(path, made):
    """Texts for a file that is not that of the repository."""
    stored = path.read_bytes()
    if made == stored:
        return
    pairs = enumerate(zip(made, stored))
    at = next((at for at, (own, other) in pairs if own != other), min(len(made), len(stored)))
    yield (
        f"{path.name}: {len(made)} octets, {len(stored)} in the repository; from octet {at} on\n"
        f"  made   {made[at : at + 32].hex()}\n  stored {stored[at : at + 32].hex()}"
    )


def run_files(description, files, folder):
    """Compares or writes files, functions that write to a path by the names of files; the exit code."""
    arguments = asked(description)
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, write in files.items():
            path = (arguments.out or pathlib.Path(temporary)) / name
            write(path)
            if arguments.check:
                found += different_octets(folder / name, path.read_bytes())
    return reported(found, len(files), "file", arguments.check)
