# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Where each field lies in a serialised message, by the installed definitions.

May know: message definitions, how bytes are laid out. Must not know: any particular message. A
prototype says what stands in a message; a template is compiled from it once, and a segment lays
it out for one actor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, NamedTuple

from state_sensor_ros.cdr.definitions import Definitions, SEQUENCE
from state_sensor_ros.cdr.writer import (
    ALIGNMENT,
    Chunk,
    COUNT,
    EachElement,
    ENCAPSULATION,
    GivenNumber,
    GivenText,
    GivenTexts,
    Layout,
    MESSAGE_PHASE,
    packed_text,
    PRIMITIVES,
    Slot,
    Step,
    Table,
    Values,
    Writer,
)
from state_sensor_ros.errors import EncodeError

__all__ = ['ALIGNMENT', 'ENCAPSULATION', 'MESSAGE_PHASE', 'Each', 'Given', 'Layout', 'Prototype',
           'Segment', 'Slot', 'Table', 'Template', 'Values']


class Given(NamedTuple):
    """A number, a string or a sequence of strings, known when the template is laid out."""

    key: str


class Each(NamedTuple):
    """One ``element`` for each mapping in the given ``key``; rows of tables count along."""

    key: str
    element: Prototype


Constant = bool | int | float | str
Prototype = Constant | Slot | Given | Each | Sequence['Prototype'] | Mapping[str, 'Prototype']


class _Compiler:
    """Flatten a prototype into steps along the definitions."""

    def __init__(self, definitions: Definitions) -> None:
        self.steps: list[Step] = []
        self._definitions = definitions

    def add_fields(self, type_name: str, prototype: Mapping[str, Prototype]) -> None:
        """Add all fields of a message; those that ``prototype`` leaves out are zero or empty."""
        fields = self._definitions[type_name]
        unknown = prototype.keys() - {field.name for field in fields}
        if unknown:
            raise EncodeError(type_name, f'no field {sorted(unknown)[0]}',
                              'the definition that this package was written for')
        for field in fields:
            where = f'{type_name} {field.name}'
            value = prototype.get(field.name)
            if field.length is None:
                self._add_value(where, field.type_name, value)
            elif field.length == SEQUENCE:
                self._add_sequence(where, field.type_name, value)
            else:
                self._add_array(where, field.type_name, field.length, value)

    def add_part(self, alignment: int, part: bytes | Slot) -> None:
        """Append to the chunk at the end."""
        if not self.steps or not isinstance(self.steps[-1], Chunk):
            self.steps.append(Chunk())
        chunk = self.steps[-1]
        assert isinstance(chunk, Chunk)
        chunk.add(alignment, part)

    def _add_sequence(self, where: str, type_name: str, value: Prototype | None) -> None:
        if isinstance(value, Given):
            if type_name != 'string':
                raise EncodeError(where, f'a sequence of {type_name}', 'strings')
            self.steps.append(GivenTexts(value.key))
        elif isinstance(value, Each):
            element = _Compiler(self._definitions)
            element._add_value(where, type_name, value.element)
            self.steps.append(EachElement(value.key, element.steps))
        else:
            elements = _elements(where, value)
            self.add_part(COUNT.size, COUNT.pack(len(elements)))
            for item in elements:
                self._add_value(where, type_name, item)

    def _add_array(self, where: str, type_name: str, length: int,
                   value: Prototype | None) -> None:
        elements = _elements(where, value) or (None,) * length
        if len(elements) != length:
            raise EncodeError(where, f'{length} elements', f'{len(elements)}')
        for item in elements:
            self._add_value(where, type_name, item)

    def _add_value(self, where: str, type_name: str, value: Prototype | None) -> None:
        primitive = PRIMITIVES.get(type_name)
        if primitive is None and type_name != 'string':
            if value is not None and (isinstance(value, Slot) or not isinstance(value, Mapping)):
                raise EncodeError(where, f'the message {type_name}', 'a number or string')
            self.add_fields(type_name, value or {})
        elif isinstance(value, Given):
            self.steps.append(GivenText(value.key) if primitive is None
                              else GivenNumber(value.key, type_name))
        elif isinstance(value, Slot):
            if primitive is None or primitive.size != value.table.word:
                raise EncodeError(where, type_name, f'{value.table.word} bytes')
            self.add_part(primitive.size, value)
        elif primitive is None and isinstance(value, (str, type(None))):
            self.add_part(COUNT.size, packed_text(value or ''))
        elif primitive is not None and isinstance(value, (int, float, type(None))):
            self.add_part(primitive.size, primitive.pack(value or 0))
        else:
            raise EncodeError(where, type_name, f'what holds {value!r}')


def _elements(where: str, value: Prototype | None) -> Sequence[Prototype | None]:
    if value is None:
        return ()
    if isinstance(value, (str, Slot, Given, Each)) or not isinstance(value, Sequence):
        raise EncodeError(where, 'several elements', 'a single one')
    return cast(Sequence[Prototype], value)


class Template:
    """
    A message, or an element of a sequence, whose givens and slots are still open.

    :param type_name: ``package/msg/Name``.
    :param prototype: fields to what stands in them; those left out are zero or empty.
    :param is_message: True puts the encapsulation header in front, at 4 modulo 8.
    :raises EncodeError: where ``prototype`` does not fit the definition.
    """

    def __init__(self, definitions: Definitions, type_name: str,
                 prototype: Mapping[str, Prototype], *, is_message: bool = False) -> None:
        self.definitions, self.type_name = definitions, type_name
        self.prototype, self.is_message = prototype, is_message
        compiler = _Compiler(definitions)
        compiler.add_fields(type_name, prototype)
        self._steps = compiler.steps

    def lay_out(self, values: Values, phase: int) -> Layout:
        """
        Serialise with ``values`` for the givens and zero in the slots.

        :param phase: start modulo 8, counted as in the message that it is or belongs to.
        """
        writer = Writer(phase)
        if self.is_message:
            writer.data += bytes(-(phase + len(ENCAPSULATION)) % ALIGNMENT) + ENCAPSULATION
        for step in self._steps:
            step.write(writer, values, 0)
        return writer.layout(self.type_name)


class Segment:
    """
    A template with its givens, laid out once for each phase that it is met at.

    :param template: what to lay out.
    :param values: the givens.
    """

    __slots__ = ('layouts', 'template', 'values')

    def __init__(self, template: Template, values: Values) -> None:
        self.template, self.values = template, values
        self.layouts: list[Layout | None] = [None] * ALIGNMENT

    def at(self, phase: int) -> Layout:
        """Return the layout behind ``phase``."""
        layout = self.layouts[phase]
        if layout is None:
            layout = self.layouts[phase] = self.template.lay_out(self.values, phase)
        return layout
