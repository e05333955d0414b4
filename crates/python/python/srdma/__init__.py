"""SRv6 for RDMA: a source sends buffers to all receivers of a multicast group at once.

    device = srdma.Device("http://[::1]:8470")
    with device.create_group(buffers={"weights": weights}) as source:
        print(source.group)
        source.commit(receivers=3)
        source.publish(1, {"weights": weights})
        source.wait(1)

At each receiver:

    with srdma.Device("http://[::1]:8470").join(group) as receiver:
        for version in receiver:
            weights = numpy.frombuffer(version["weights"], numpy.float32)
"""

import atexit as _atexit

from . import errors
from ._native import VERSION as __version__
from ._native import Device, Event, Receiver, Source, Version
from ._native import close_all as _close_all
from .errors import Error

__all__ = ["Device", "Error", "Event", "Receiver", "Source", "Version", "__version__", "errors"]

_atexit.register(_close_all)
