"""Sources and receivers in `asyncio` programs: no thread waits.

    async with srdma.aio.Receiver(device.join(group)) as receiver:
        async for version in receiver:
            ...

The wrapper takes the events of its handle; `events` has them for the program.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from . import _native
from .errors import GroupClosed, Timeout, UnknownVersion

_Handle = TypeVar("_Handle", _native.Source, _native.Receiver)
_Result = TypeVar("_Result")

#: Events that are kept for a program that does not take them.
MOST_EVENTS = 1024


class _Waiter(Generic[_Handle]):
    """Waits for events of a handle in the running loop."""

    def __init__(self, handle: _Handle) -> None:
        self.handle: _Handle = handle
        #: Events in their order; the program may take them.
        self.events: deque[_native.Event] = deque(maxlen=MOST_EVENTS)
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._descriptor = handle.fileno()
        self._loop.add_reader(self._descriptor, self._take_events)

    def _take_events(self) -> None:
        while (event := self.handle.next_event()) is not None:
            self.events.append(event)
        self._changed.set()

    async def _until(self, attempt: Callable[[], _Result], timeout: float | None) -> _Result:
        """Tries after each event; the exception of the library is raised when time is up."""
        end = None if timeout is None else self._loop.time() + timeout
        while True:
            self._changed.clear()
            try:
                return attempt()
            except Timeout:
                left = None if end is None else end - self._loop.time()
                if left is not None and left <= 0:
                    raise
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                # The last attempt says so by the exception of the library.
                continue

    async def aclose(self) -> None:
        """Closes the handle."""
        self._loop.remove_reader(self._descriptor)
        await asyncio.to_thread(self.handle.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Source(_Waiter[_native.Source]):
    """A source."""

    async def commit(self, receivers: int, timeout: float | None = 60.0) -> None:
        """As `srdma.Source.commit`: requests to the controller, in a thread."""
        await asyncio.to_thread(self.handle.commit, receivers, timeout)

    def publish(self, version: int, buffers: _native.Buffers) -> None:
        """As `srdma.Source.publish`."""
        self.handle.publish(version, buffers)

    async def wait(self, version: int, timeout: float | None = 60.0) -> None:
        """As `srdma.Source.wait`."""
        await self._until(lambda: self.handle.wait(version, 0), timeout)


class Receiver(_Waiter[_native.Receiver]):
    """A receiver."""

    async def next_version(self, timeout: float | None = 60.0) -> _native.Version:
        """As `srdma.Receiver.next_version`."""
        return await self._until(lambda: self.handle.next_version(0), timeout)

    async def wait(self, version: int, timeout: float | None = 60.0) -> _native.Version:
        """As `srdma.Receiver.wait`."""

        def attempt() -> _native.Version:
            while True:
                found = self.handle.next_version(0)
                if found.number == version:
                    return found
                if found.number > version:
                    raise UnknownVersion(f"version {version} was not published, or was rejected")
                found.release()

        return await self._until(attempt, timeout)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _native.Version:
        try:
            return await self.next_version(None)
        except GroupClosed:
            raise StopAsyncIteration from None
