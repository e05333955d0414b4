"""A program that uses buffers of a driver by its sockets, as consumers of the Weight Propagation Interface do.

    consumer.py DIR BUFFER fill FILE               writes the octets of a file to the buffer
    consumer.py DIR BUFFER compare FILE OFFSET     exit code 1 unless the octets from OFFSET on are those of the file
    consumer.py DIR BUFFER notices COUNT           prints "connected", and so many notices
    consumer.py DIR BUFFER says TEXT               prints the answer to a first line
"""

import mmap
import os
import socket
import sys


def connect(directory, name):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(60)
    peer.connect(os.path.join(directory, name))
    return peer


def buffer(directory, name):
    peer = connect(directory, name + ".sock")
    peer.sendall(b"GPU=0\n")
    answer, descriptors, _, _ = socket.recv_fds(peer, 64, 1)
    assert answer == b"OK\n" and len(descriptors) == 1, (answer, descriptors)
    return mmap.mmap(descriptors[0], os.fstat(descriptors[0]).st_size)


def main():
    directory, name, command, *rest = sys.argv[1:]
    if command == "fill":
        with open(rest[0], "rb") as file:
            octets = file.read()
        buffer(directory, name)[: len(octets)] = octets
    elif command == "compare":
        with open(rest[0], "rb") as file:
            octets = file.read()
        offset = int(rest[1])
        found = buffer(directory, name)[offset : offset + len(octets)]
        if found != octets:
            at = next((at for at, (a, b) in enumerate(zip(found, octets)) if a != b), min(len(found), len(octets)))
            sys.exit(f"{name} differs at octet {offset + at}")
    elif command == "notices":
        peer = connect(directory, name + "_notify.sock")
        print("connected", flush=True)
        lines = peer.makefile()
        for _ in range(int(rest[0])):
            try:
                notice = lines.readline()
            except ConnectionResetError:
                # The socket was closed before the driver had accepted the connection.
                notice = ""
            print(notice.strip(), flush=True)
    elif command == "says":
        peer = connect(directory, name + ".sock")
        peer.sendall(rest[0].encode())
        peer.shutdown(socket.SHUT_WR)
        answer, descriptors, _, _ = socket.recv_fds(peer, 1024, 1)
        print(answer.decode().strip(), len(descriptors))
    else:
        sys.exit(f"no command {command}")


main()
