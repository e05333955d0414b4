"""Exceptions, with the names and the sentences of the host library."""

from __future__ import annotations


class Error(Exception):
    """Any error of the library."""


class UnknownProvider(Error):
    """There is no provider of this name."""


class TokenFile(Error):
    """The file with the bearer token cannot be used."""


class Controller(Error):
    """The controller is not reached, or refuses."""


class NoAddress(Error):
    """The address of this host is needed, and cannot be chosen."""


class Wire(Error):
    """The socket cannot be opened, or the Proxy Address is not reached."""


class Verbs(Error):
    """The RDMA device, or libibverbs, cannot be used."""


class BufferMoves(Error):
    """The buffer is at another place at each look."""


class DeviceMemory(Error):
    """The memory is that of a GPU or of another device."""


class NotContiguous(Error, ValueError):
    """The elements of the tensor or array are not one behind the other."""


class QueuePair(Error):
    """The queue pair cannot be made."""


class InvalidGroup(Error):
    """The controller describes a group that this version cannot use."""


class InvalidSlots(Error, ValueError):
    """The number or the length of slots is out of range."""


class OutOfRange(Error, ValueError):
    """A value is out of range."""


class NoRegion(Error):
    """The group's source is not one of this library."""


class RegionTooSmall(Error):
    """The region is smaller than the group's."""


class RuntimeDirectory(Error):
    """The directory in which the processes of a host find each other cannot be used."""


class NoOwner(Error, TimeoutError):
    """Another process of this host is to have the receiver, and has not joined in time."""


class NoMemory(Error, MemoryError):
    """There is not so much memory."""


class System(Error):
    """The operating system has failed a call."""


class StillMember(Error):
    """A former process of this host did not leave the group in time."""


class LastReceiver(Error):
    """The group cannot be without its last receiver."""


class NotReady(Error, TimeoutError):
    """Not so many receivers have joined in time."""


class NotCommitted(Error):
    """The nodes have not taken the group."""


class AlreadyCommitted(Error):
    """The group is committed already."""


class NotNewer(Error, ValueError):
    """The version is not after those before."""


class QueueFull(Error):
    """Too many versions wait to be sent."""


class InvalidManifest(Error, ValueError):
    """Names or lengths of the buffers are out of range, or they do not fit the slot."""


class UnknownVersion(Error, LookupError):
    """The version was not published, or was rejected."""


class Timeout(Error, TimeoutError):
    """Not in time."""


class Forked(Error):
    """The handle belongs to another process."""


class Over(Error):
    """The source or the receiver works no more."""


class GroupClosed(Over):
    """The group is closed."""


class Closed(Over):
    """The handle is closed."""


class Evicted(Over):
    """The receiver is no longer a member of the group."""


class Refused(Over):
    """The controller has refused the receiver."""


class Detached(Over):
    """The owner of the host's receiver has detached this process."""


class OwnerLost(Over):
    """The owner of the host's receiver has ended, and there is no other."""


class QueuePairFailed(Over):
    """The queue pair has failed."""


class SocketFailed(Over):
    """The socket has failed."""


class DeviceFailed(Over):
    """The RDMA device has failed."""
