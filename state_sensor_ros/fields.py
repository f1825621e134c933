# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Rows of the table of everything that a frame has: the classes in ``frame.py``.

A row states the level, the type in numpy, the text, the unit, the columns in tables and the value
that stands for an unknown one. The check of a new frame, selection and joining of actors, tables,
``~/frame``, the lists of what a format drops, and the reference derive from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
import dataclasses
from dataclasses import dataclass, MISSING, replace
from functools import partial
from itertools import chain
import math
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import StateError
from state_sensor_ros.texts import counted

# Types of columns that are tuples: a text of each entry, or a tuple of texts.
TEXT, TEXTS = 'text', 'texts'

Values = TypeVar('Values', bound=npt.NDArray[Any])
Part = TypeVar('Part', bound='Columns')
Owned = TypeVar('Owned', bound='OfActors')


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One row of the table."""

    name: str = ''
    level: str  # frame, actor, box, wheel, lane or light
    dtype: str  # of numpy, TEXT, TEXTS; empty for a value of the whole frame
    text: str
    width: int = 0  # numbers of an entry; 0 for a column of single numbers
    unit: str = ''
    columns: tuple[str, ...] = ()  # names in tables
    unknown: Any = math.nan  # value of an entry whose own one is not known
    bounds: tuple[int, int] | None = None
    part: str = ''  # in the list of what a format drops; empty for what each of them carries
    is_optional: bool = False

    @property
    def is_array(self) -> bool:
        """Return whether it is a column of numpy."""
        return self.dtype not in (TEXT, TEXTS, '')

    def check(self, value: Any, n_entries: int) -> None:  # noqa: ANN401
        """
        Check the shape, the type and the bounds of a column, and make it read-only.

        :raises StateError: if it is not of ``n_entries`` entries.
        """
        if self.dtype in (TEXT, TEXTS):
            if len(value) != n_entries and (value or not self.is_optional):
                raise StateError(self.name, f'{len(value)} entries', str(n_entries))
            return
        shape = (n_entries, self.width) if self.width else (n_entries,)
        if len(value) != n_entries or (n_entries and value.shape != shape):
            raise StateError(self.name, f'shape {value.shape}', str(shape))
        if n_entries and value.dtype != self.dtype:
            raise StateError(self.name, str(value.dtype), self.dtype)
        if self.bounds and n_entries and not (
                self.bounds[0] <= value.min() and value.max() <= self.bounds[1]):
            raise StateError(self.name, f'{value.min()} to {value.max()}',
                             f'{self.bounds[0]} to {self.bounds[1]}')
        value.setflags(write=False)

    def unknowns(self, n_entries: int) -> Any:  # noqa: ANN401
        """Return a column whose values are unknown."""
        if not self.is_array:
            return (self.unknown,) * n_entries
        return np.full((n_entries, self.width) if self.width else n_entries, self.unknown,
                       self.dtype)

    def is_in(self, value: Any) -> bool:  # noqa: ANN401
        """Return whether a frame with this value has something to lose."""
        if isinstance(value, np.ndarray):
            return value.dtype.kind != 'f' or bool(np.isfinite(value).any())
        return any(value or ()) if self.dtype == TEXT else bool(value)


def row(level: str, dtype: str, text: str, *, columns: str = '',
        default: Any = MISSING, **rest: Any) -> Any:  # noqa: ANN401
    """
    Return a row of the table as a field of a dataclass.

    :param columns: names of its columns in tables, with blanks between them; ``*`` for its name.
    :param default: value of a frame that has none; a field without a default must be given.
    :param rest: members of :class:`Field`.
    """
    names = tuple(columns.split())
    # A dataclass takes a proxy of a mapping for one that may change.
    given = {'default_factory': lambda: default} if isinstance(default, Mapping) \
        else {'default': default}
    return dataclasses.field(**given, metadata={'row': Field(
        level=level, dtype=dtype, text=text, columns=names, is_optional=default is not MISSING, **{
            'width': len(names) if len(names) > 1 else 0,
            'unknown': math.nan if dtype == 'f8' else '' if dtype == TEXT else 0, **rest})})


def actor(dtype: str, text: str, *, columns: str = '*', part: str = '*',
          **rest: Any) -> Any:  # noqa: ANN401
    """Return a row of actors that a source may lack; it has a column of its name in tables."""
    return row('actor', dtype, text, columns=columns, default=None, part=part, **rest)


class View(Generic[Values]):
    """Some columns of a block of numbers, as an attribute; a row of the table, too."""

    def __init__(self, block: str, first: int, columns: str, text: str, unit: str = '') -> None:
        self.block, self.columns = block, tuple(columns.split())
        self.text, self.unit = text, unit
        width = len(self.columns)
        self._index = first if width == 1 else slice(first, first + width)

    def __get__(self, part: object, owner: type) -> Values:
        if part is None:
            return self  # type: ignore[return-value]
        values: Values = getattr(part, self.block)[:, self._index]
        return values


class Columns:
    """Base of the classes of the table: read-only columns of equal lengths."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def __post_init__(self) -> None:
        """
        Check all columns, and make the arrays read-only.

        :raises StateError: on unequal lengths, a wrong shape or type.
        """
        n_entries = len(self)
        for field in rows_of(type(self)):
            if field.dtype and (value := getattr(self, field.name)) is not None:
                field.check(value, n_entries)

    def taken(self, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Return the columns of the entries at ``rows`` by name, without those it lacks."""
        return {field.name: value[rows] if field.is_array
                else tuple([value[i] for i in rows.tolist()])
                for field in rows_of(type(self)) if field.dtype
                and (value := getattr(self, field.name)) is not None and (field.is_array or value)}


_STORED: dict[type, tuple[Field, ...]] = {}


def rows_of(kind: type) -> tuple[Field, ...]:
    """Return the rows of a class of the table that are stored."""
    if kind not in _STORED:
        _STORED[kind] = tuple(
            replace(found, name=name, part=found.part.replace('*', name.replace('_', ' ')),
                    columns=tuple([column.replace('*', name) for column in found.columns]))
            for name, found in [(each.name, each.metadata.get('row'))
                                for each in dataclasses.fields(kind)] if found is not None)
    return _STORED[kind]


def public_rows_of(kind: type) -> list[Field]:
    """Return the rows of a class of the table, with the views of a block in its place."""
    rows = []
    for field in rows_of(kind):
        views = [replace(field, name=name, text=view.text, unit=view.unit, columns=view.columns,
                         width=len(view.columns) if len(view.columns) > 1 else 0)
                 for name, view in vars(kind).items()
                 if isinstance(view, View) and view.block == field.name]
        rows += views or [field]
    return rows


def flat(kind: type) -> list[Any]:
    """Return the columns of a class of the table without entries, except those with a default."""
    return [field.unknowns(0) for field in rows_of(kind) if not field.is_optional]


def joined(parts: Sequence[Part], begins: Sequence[int]) -> Part:
    """
    Return the entries of frames that have the same fields, one after the other.

    :param parts: the frames, or the same part of each; what is not a column is the first one's.
    :param begins: row of the first actor of each among the actors of all.
    """
    columns: dict[str, Any] = {}
    for field in rows_of(type(parts[0])):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], OfActors):
            # As late as the first of them.
            columns[field.name] = joined(values, begins) if values[0].is_read() \
                else type(values[0]).late(partial(joined, values, begins))
        elif field.name == 'actor':
            columns['actor'] = np.concatenate([
                value + begin for value, begin in zip(values, begins, strict=True)])
        elif field.is_array and values[0] is not None:
            columns[field.name] = np.concatenate(values)
        elif field.dtype and values[0] is not None:
            columns[field.name] = tuple(chain.from_iterable(values))
    return replace(parts[0], **columns)  # type: ignore[type-var]


def cut(part: Part, begin: int, end: int, **changes: Any) -> Part:  # noqa: ANN401
    """Return consecutive entries; ``changes``: new values of some of the fields."""
    columns: dict[str, Any] = {}
    for field in rows_of(type(part)):
        value = getattr(part, field.name)
        if isinstance(value, OfActors):
            first, last = value.actor.searchsorted((begin, end)).tolist()
            columns[field.name] = cut(value, first, last, actor=value.actor[first:last] - begin)
        elif field.dtype and value is not None:
            columns[field.name] = value[begin:end]
    return replace(part, **{**columns, **changes})  # type: ignore[type-var]


def extended(part: Part, n_entries: int, **given: Any) -> Part:  # noqa: ANN401
    """Return a part with more entries at its end; ``given``: their columns, others unknown."""
    columns: dict[str, Any] = {}
    for field in rows_of(type(part)):
        value = getattr(part, field.name)
        if field.dtype and value is not None:
            new = given.get(field.name, field.unknowns(n_entries))
            columns[field.name] = np.concatenate((value, new)) if field.is_array \
                else (*value, *new)
    return replace(part, **columns)  # type: ignore[type-var]


class OfActors(Columns):
    """Columns whose entries have an owner: column ``actor``, ascending."""

    __slots__ = ('_read',)
    actor: npt.NDArray[np.int64]

    @classmethod
    def late(cls: type[Owned], read: Callable[[], Owned], **known: object) -> Owned:
        """
        Return entries that are read when the first of their columns is asked for.

        :param known: columns that are known before.
        """
        part = cls.__new__(cls)
        for name, value in {'_read': read, **known}.items():
            object.__setattr__(part, name, value)
        return part

    def is_read(self) -> bool:
        return getattr(self, '_read', None) is None

    def __getattr__(self, name: str) -> object:
        # Python calls this for a column that is not there yet.
        if not name.startswith('_') and (read := getattr(self, '_read', None)) is not None:
            part = read()
            for each in rows_of(type(self)):
                object.__setattr__(self, each.name, getattr(part, each.name))
            object.__setattr__(self, '_read', None)
        return object.__getattribute__(self, name)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.actor)

    def __repr__(self) -> str:
        owners = counted(len(np.unique(self.actor)), 'actor')
        return f'{type(self).__name__}({len(self)} of {owners})'

    def of_actors(self: Owned, new_row: npt.NDArray[np.int64]) -> Owned:
        """
        Return the entries whose actor stays, read as late as these.

        :param new_row: (N,) new rows by old ones, -1 = gone.
        """
        def read() -> Owned:
            actor = new_row[self.actor]
            keep = np.flatnonzero(actor >= 0)
            columns = {**self.taken(keep), 'actor': actor[keep]}
            return replace(self, **columns)  # type: ignore[type-var]

        return read() if self.is_read() else type(self).late(read)


def parts_of(frame: Columns, known: Set[str]) -> list[Field]:
    """Return the rows of what a frame has and not every format carries, without those known."""
    found = []
    for field in rows_of(type(frame)):
        if field.part:
            value = getattr(frame, field.name)
            if field.name not in known and field.is_in(value):
                found.append(field)
            if isinstance(value, OfActors):
                found += parts_of(value, known)
    return found
