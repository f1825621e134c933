# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Threads that serve between start and close, and who waits for readers or for the end.

May know: threads, sockets to hang up on. Must not: ports, protocols, what is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
import socket
import threading
from types import TracebackType
from typing import TypeVar

JOIN_S = 5.0
# While the process is out of file descriptors, a listener stays ready: do not spin.
ACCEPT_PAUSE_S = 0.005

Self = TypeVar('Self', bound='Serving')


class Serving(ABC):
    """
    What the stand-ins have in common; each serves between ``start`` and ``close`` or in a block.

    :ivar n_sent: frames sent so far.
    """

    def __init__(self) -> None:
        self.n_sent = 0
        self._sessions: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._finished = threading.Event()

    def __enter__(self: Self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    @property
    @abstractmethod
    def n_readers(self) -> int:
        """Return how many connections there are to the ports that frames go to."""

    @abstractmethod
    def start(self) -> None:
        """Begin to serve."""

    @abstractmethod
    def close(self) -> None:
        """End all connections and threads; closing twice is harmless."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """
        Wait until there is nothing more to send.

        :param timeout_s: None waits for ever.
        :returns: whether that is so.
        """
        return self._finished.wait(timeout_s)

    def wait_for_readers(self, n_readers: int = 1, timeout_s: float = 10.0) -> bool:
        """
        Wait until somebody reads frames.

        :param n_readers: how many at least.
        :param timeout_s: for how long.
        :returns: whether so many are there.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self.n_readers >= n_readers, timeout_s)

    def _begin(self, work: Callable[..., None], *args: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, name=work.__name__, daemon=True)
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()
        return thread
