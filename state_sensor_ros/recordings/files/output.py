# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What all outputs with a name have in common: they appear whole under it, or not at all.

May know: the order of steps. Must not know: files, what is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

Self = TypeVar('Self', bound='Output')


class Output(ABC):
    """
    An output, ended by either :meth:`commit` or :meth:`abort`, or by a ``with``.

    :ivar name: of the output as it was given.
    """

    name: str

    @property
    def remains(self) -> str:
        """Describe what is left of an output that was replaced, in words, ``''`` if nothing."""
        return ''

    @abstractmethod
    def complete(self) -> None:
        """
        Wait until everything has reached the disk; nothing can be written after that.

        :raises SinkError: where it has not.
        """

    @abstractmethod
    def commit(self) -> None:
        """
        Complete the output if it is not, and give it its name; doing so twice is harmless.

        :raises SinkError: when that fails; an output that is complete is kept beside its name.
        """

    @abstractmethod
    def discard(self) -> str:
        """
        Remove what was written, from any thread; harmless after :meth:`commit`.

        :returns: what is left, in words.
        """

    @abstractmethod
    def abort(self) -> None:
        """Close and remove what was written; doing so twice, or after commit, is harmless."""

    def finish(self) -> None:
        """Commit the output; what cannot be completed is aborted."""
        try:
            self.commit()
        finally:
            self.abort()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if error is None:
            self.finish()
        else:
            self.abort()
