# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Interface of an output with a name: it appears whole under its name, or not at all.

::

    constructor --> writing --> complete() --> commit()       the output has its name
                       |             |
                       +-------------+-------> abort()        nothing is left of it

:meth:`Output.commit` completes an output that is not complete. :meth:`Output.finish` and the end
of a ``with`` commit it, and abort it if it cannot be completed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

from state_sensor_ros.errors import reason_of, SinkError

Self = TypeVar('Self', bound='Output')


def sink_error(name: str, error: OSError) -> SinkError:
    """
    Return the SinkError of an output for an error.

    :param name: name of the output.
    :param error: error of the operating system; a SinkError is returned unchanged.
    """
    return error if isinstance(error, SinkError) else SinkError(name, reason_of(error))


class Output(ABC):
    """
    An output, ended by either :meth:`commit` or :meth:`abort`, or by a ``with``.

    :ivar name: path of the output as given.
    """

    name: str

    @property
    def remains(self) -> str:
        """Return a description of what is left of a replaced output, ``''`` for nothing."""
        return ''

    @abstractmethod
    def complete(self) -> None:
        """
        Sync everything to the disk; nothing can be written after that.

        :raises SinkError: if that fails, for example on a full disk.
        """

    @abstractmethod
    def commit(self) -> None:
        """
        Complete the output if necessary, and give it its name; a second call has no effect.

        :raises SinkError: if that fails; a complete output is kept beside its name.
        """

    @abstractmethod
    def discard(self) -> str:
        """
        Remove the written data, from any thread; no effect after :meth:`commit`.

        :returns: a line about the result.
        """

    @abstractmethod
    def abort(self) -> None:
        """Close the output and remove the written data; no effect after :meth:`commit`."""

    def salvage(self) -> str:
        """
        End an output that cannot be completed: keep the data that can be read without its end.

        :returns: a description of its place, ``''`` if nothing is kept.
        """
        self.abort()
        return ''

    def finish(self) -> None:
        """Commit the output; abort it if it cannot be completed."""
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
