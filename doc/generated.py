# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The directive ``generated``: parts of the reference that are made from the code.

``frame_fields`` from frame.py, ``messages`` from msg/*.msg, ``parameters`` from settings.py and
simulators/, ``commands`` from the parsers of the command line. Each is a function that returns
MyST text.
"""

from importlib.util import find_spec
from pathlib import Path
import re
from typing import ClassVar

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock
from sphinx.util.docutils import SphinxDirective

import state_sensor_ros

ROOT = Path(state_sensor_ros.__file__).resolve().parents[1]
# Libraries that the modules import and that this environment does not have: they are mocked.
MISSING = tuple(name for name in (
    'apsw', 'backports', 'compression', 'distributed', 'google', 'lz4', 'mcap',
    'matplotlib', 'msgspec', 'numpy', 'osi3', 'PIL', 'plotly', 'pyarrow', 'pytest', 'rerun',
    'rosbags', 'ruamel', 'tqdm', 'trackeval') if find_spec(name) is None)
with mock(MISSING):
    from state_sensor_ros.commands.cli import command_parser, COMMANDS
    from state_sensor_ros.fields import Field, public_rows_of
    from state_sensor_ros.frame import Boxes, Frame, Lanes, TrafficLights, Wheels
    from state_sensor_ros.parameters import Parameter, Rule
    from state_sensor_ros.simulators import schema_of

    SCHEMA = schema_of()
_FIELD = re.compile(r'(?P<type>\S+)\s+(?P<name>\w+)\s*(=\s*(?P<value>\S+))?\s*#\s*(?P<text>.*)')


def table(*rows: tuple[str, ...]) -> str:
    """
    Return a Markdown table.

    :param rows: cells, of the head first.
    """
    head, *body = [[cell.replace('|', '\\|') for cell in row] for row in rows]
    lines = [head, ['---'] * len(head), *body]
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def frame_fields() -> str:
    """Return a table of the fields of a frame and of each of its parts."""
    return '\n\n'.join(f'`{kind.__name__}`:\n\n' + table(
        ('field', 'type', 'unit', 'meaning'), *[
            (f'`{field.name}`', _type(kind, field), field.unit, field.text)
            for field in public_rows_of(kind)])
        for kind in (Frame, Boxes, Wheels, Lanes, TrafficLights))


def _type(kind: type, field: Field) -> str:
    number = {'f': 'float', 'i': 'int', 'u': 'uint'}.get(field.dtype[:1])
    if field.dtype != '?' and (number is None or not field.is_array):
        return f'`{kind.__annotations__[field.name]}`'
    name = f'{number}{8 * int(field.dtype[1:])}' if number else 'bool'
    return f'(N, {field.width}) {name}' if field.width else f'(N,) {name}'


def messages() -> str:
    """Return a section for each message: its summary, constants and fields."""
    return '\n\n'.join(map(_message, sorted((ROOT / 'msg').glob('*.msg'))))


def _message(path: Path) -> str:
    lines = path.read_text(encoding='utf-8').splitlines()
    found = [match.groupdict() for line in lines if (match := _FIELD.fullmatch(line))]
    constants = [(f'`{each["name"]}`', each['value'], each['text']) for each in found
                 if each['value'] is not None]
    fields = [(f'`{each["name"]}`', f'`{each["type"]}`', each['text']) for each in found
              if each['value'] is None]
    parts = [f'## {path.stem}', lines[0].lstrip('# ')]
    if constants:
        parts.append(table(('constant', 'value', ''), *constants))
    return '\n\n'.join([*parts, table(('field', 'type', 'meaning'), *fields)])


def parameters() -> str:
    """Return a section for each subject, with the table of its parameters."""
    groups: dict[str, list[Parameter]] = {}
    heading = ''
    for found in map(SCHEMA.find, SCHEMA.names):
        prefix, dot, _ = found.name.partition('.')
        heading = f'`{prefix}.*`' if dot else found.rule.subject.capitalize() or heading or 'Node'
        groups.setdefault(heading, []).append(found)
    return '\n\n'.join(f'## {title}\n\n' + table(
        ('parameter', 'default', 'values', 'meaning'), *map(_parameter, group))
        for title, group in groups.items())


def _parameter(found: Parameter) -> tuple[str, ...]:
    type_name = f'{found.item.__name__} list' if found.item else found.type.__name__
    mark = ' **D**' if found.rule.dynamic else ''
    others = [f'`{alias}`' for alias, name in SCHEMA.aliases.items() if name == found.name]
    former = f' Also: {", ".join(others)}.' if others else ''
    allowed = _allowed(found.rule)
    values = allowed if found.rule.choices else f'{type_name} {allowed}'.strip()
    return (f'`{found.name}`{mark}', _default(found.default), values,
            f'{found.rule.help}{former}')


def _default(value: object) -> str:
    if isinstance(value, tuple):
        if len(set(value)) == 1 and len(value) > 1:
            return f'{len(value)} × `{value[0]:g}`'
        words = [item if isinstance(item, str) else f'{item:g}' for item in value]
        return f'`[{", ".join(words)}]`'
    if isinstance(value, bool):
        return f'`{str(value).lower()}`'
    return f'`{value}`' if value != '' else '`""`'


def _allowed(rule: Rule) -> str:
    if rule.choices:
        choices = ', '.join(f'`{choice}`' for choice in rule.choices)
        return f'{choices}, or an [added](../design/extending.md#a-simulator) one' \
            if rule.is_open else choices
    count = f'({rule.length} numbers)' if rule.length else ''
    if rule.low is None:
        return count
    bounds = f'≥ {rule.low:g}' if rule.high is None else f'{rule.low:.10g} … {rule.high:.10g}'
    return f'{count}, each {bounds}' if count else bounds


def commands() -> str:
    """Return a section for each sub-command with its options."""
    if 'msgspec' in MISSING or 'numpy' in MISSING:
        # rosdoc2 installs neither; a mock is no base class and no array.
        return 'The commands: ' + ', '.join(f'`{name}`' for name in COMMANDS) + '.'
    with mock(MISSING):
        return '\n\n'.join(_command(name, help_) for name, help_ in COMMANDS.items())


def _command(name: str, help_: str) -> str:
    text = command_parser(name).format_help()
    return f'## {name}\n\n{help_.capitalize()}.\n\n```text\n{text}```'


class Generated(SphinxDirective):
    """Insert what the named function of this module returns."""

    required_arguments = 1
    sources: ClassVar = {each.__name__: each for each in (
        frame_fields, messages, parameters, commands)}

    def run(self) -> list[Node]:
        """Return the nodes of the text."""
        return self.parse_text_to_nodes(self.sources[self.arguments[0]](),
                                        allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive('generated', Generated)
    return {'parallel_read_safe': True}
