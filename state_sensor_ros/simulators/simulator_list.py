# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The simulators by name: those of this package, and those that other packages add.

Another package adds one by an entry point of the group ``state_sensor_ros.simulators``, named as
the parameter ``source`` is to name it, whose value is a subclass of :class:`Simulator`. One that
cannot be loaded is skipped with a warning; it is an error if it is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec
import os
import sys
from typing import cast, TYPE_CHECKING
import warnings

from state_sensor_ros.control.ego_commands import ControlParameters
from state_sensor_ros.errors import ConfigError, importing
from state_sensor_ros.files import Format
from state_sensor_ros.parameters import LIVE, nearest, NODE, parameters_in, RECORDED
from state_sensor_ros.settings import DEFAULTS, FILE, NAMES, ParameterTable, Settings, SIMULATORS
from state_sensor_ros.simulators.simulator import Simulator, SOURCE_PARAMETERS
from state_sensor_ros.texts import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = 'state_sensor_ros.simulators'
# Prefix of the parameters of commands to the ego.
CONTROL = 'control'
# Names of parameters that mean the source's own if it declares such.
_GENERAL = ('host', 'port')


class SimulatorWarning(RuntimeWarning):
    """An added simulator was skipped."""


@cache
def _built_in(name: str) -> Simulator:
    """Return a simulator of this package, without a search for those of others."""
    module = import_module(f'{__package__}.{name}.simulator')
    return cast(Simulator, getattr(module, f'{name.capitalize()}Simulator')())


def default_simulator() -> Simulator:
    return _built_in(SIMULATORS[0])


@cache
def _entries() -> dict[str, EntryPoint]:
    """Return the entry points of other packages; searching takes 0.02 to 0.1 s."""
    found: dict[str, EntryPoint] = {}
    for package in distributions():
        try:
            entries = [*package.entry_points.select(group=ENTRY_POINTS)]
        except Exception as error:  # noqa: BLE001  # whatever the parser of a file raises
            warnings.warn(f'the entry points of {package.metadata["Name"]} are skipped: '
                          f'{one_line(f"{type(error).__name__}: {error}")}',
                          SimulatorWarning, stacklevel=2)
            continue
        for entry in entries:
            if entry.name not in (*SIMULATORS, FILE):
                found.setdefault(entry.name, entry)
    return found


def simulator_names() -> list[str]:
    """Return the names of all installed simulators, without loading any."""
    return [*SIMULATORS, *sorted(_entries())]


@cache
def simulators() -> dict[str, Simulator]:
    """Return all simulators by name; of one that cannot be loaded, a SimulatorWarning is made."""
    found = {name: _built_in(name) for name in SIMULATORS}
    for name, entry in _entries().items():
        loaded = _loaded(name)
        if isinstance(loaded, Simulator):
            found[name] = loaded
        else:
            warnings.warn(f'the simulator {name} ({entry.value}) is skipped: {loaded}',
                          SimulatorWarning, stacklevel=2)
    return found


def find_simulator(name: str) -> Simulator:
    """Return the simulator whose frames a source receives."""
    # name: value of the parameter ``source``; of ``file`` or of none, the default one.
    if name in ('', FILE):
        return default_simulator()
    for built_in in SIMULATORS:
        if name == built_in or name in _built_in(built_in).old_names:
            return _built_in(built_in)
    entry = _entries().get(name)
    if entry is None:
        known = [*simulator_names(), FILE]
        raise ConfigError('source', repr(name), f'one of {", ".join(sorted(known))}'
                          + (f'; the most similar is {near}' if (near := nearest(name, known))
                             else ''))
    loaded = _loaded(name)
    if isinstance(loaded, str):
        raise ConfigError('source', f'{name}, an added simulator that cannot be used: {loaded}',
                          f'a subclass of Simulator in {entry.value}')
    return loaded


@cache
def _loaded(name: str) -> Simulator | str:
    """Return an added simulator, or why it cannot be used."""
    try:
        with _printing_to_standard_error():
            kind = _entries()[name].load()
            simulator = kind()
            if not isinstance(simulator, Simulator):
                return f'{kind!r} is not a subclass of Simulator'
            if simulator.name != name:
                return f'its name is {simulator.name}; expected that of the entry point'
            if simulator.parameters is not None:
                parameters_in(simulator.parameters, f'{name}.')
                simulator.parameters()
            # They are read in programs that do not use it.
            table = ParameterTable(
                {} if simulator.parameters is None else {name: simulator.parameters}, {})
            wrong = [*(each for each in simulator.formats if not isinstance(each, Format)),
                     *(alias for alias, own in simulator.aliases.items()
                       if not table.has(f'{name}.{own}')), *(
                         suffix for suffix, reader in simulator.map_files.items()
                         if not suffix or not reader)]
            return f'its declaration of {wrong[0]!r} cannot be used' if wrong else simulator
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        # Whatever the code of another package raises, SystemExit included, concerns it alone.
        return one_line(f'{type(error).__name__}: {error}')


@contextmanager
def _printing_to_standard_error() -> Iterator[None]:
    """Send what code of other packages prints to standard error, from C libraries as well."""
    if sys.stdout is not None:
        sys.stdout.flush()
    saved = None
    with suppress(OSError):
        saved = os.dup(1)
        os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)


def schema_of(source: str = DEFAULTS.source, *, with_added: bool = False) -> ParameterTable:
    """Return the parameters that there are."""
    # source: the selected simulator, whose own host and port the general ones mean.
    # with_added: whether those of all added simulators are included, not only those of this
    # package and of ``source``.
    selected = find_simulator(source)
    found = simulators() if with_added else {name: _built_in(name) for name in SIMULATORS}
    found = {**found, selected.name: selected}
    return ParameterTable(
        {CONTROL: ControlParameters,
         **{name: each.parameters for name, each in found.items() if each.parameters is not None}},
        {alias: f'{name}.{own}' for name, each in found.items()
         for alias, own in each.aliases.items() if alias not in _GENERAL or each is selected})


def checked_settings(values: Mapping[str, object], base: Settings = DEFAULTS, *,
                     with_added: bool = False) -> Settings:
    """Check parameters one by one, against each other and against the simulator."""
    values = {**values, **implied_values(values, base)}
    source = values.get('source', base.source)
    if not isinstance(source, str):
        # Refused with a reason by the parameter itself.
        source = base.source
    settings = schema_of(source, with_added=with_added).parse(values, base)
    simulator = find_simulator(settings.source)
    if settings.stamp_source == 'utc' and settings.source != FILE \
            and not simulator.has_wall_time:
        raise ConfigError('stamp_source', 'utc', f'game_time or ros if source is '
                          f'{settings.source}: its frames carry no date')
    if settings.control_input and (settings.source == FILE or not simulator.takes_commands):
        raise ConfigError('control_input', settings.control_input,
                          f"'' if source is {settings.source}: it takes no commands")
    if settings.source != FILE:
        _check_libraries(simulator, settings)
    simulator.check(settings)
    return settings


def _check_libraries(simulator: Simulator, settings: Settings) -> None:
    """Check that the libraries are installed that the parameters of a live source need."""
    if simulator.parameters is None:
        return
    own: object = settings.of(simulator.parameters)
    for declared in parameters_in(simulator.parameters).values():
        for _, library in declared.packages(getattr(own, declared.attribute)):
            with importing(f'source {simulator.name}'):
                # Found but not imported: libraries of simulators take a second, disturb others.
                if find_spec(library) is None:
                    raise ModuleNotFoundError(f'No module named {library!r}', name=library)


def unread_parameters(names: Iterable[str], simulator: str) -> dict[str, str]:
    """Map each parameter that reading a recording ignores to what uses it instead."""
    # simulator: name of the recording's simulator, ``''`` for none.
    schema, found = schema_of(with_added=True), {}
    for name in names:
        declared = schema.find(name)
        owner = declared.name.partition('.')[0]
        if declared.name in NAMES:
            continue
        if owner == CONTROL:
            found[name] = 'commands to the ego'
        elif declared.rule.used_by == LIVE:
            found[name] = 'a live stream'
        elif owner != simulator:
            found[name] = f'a recording of {owner}'
    return found


def with_config_file(explicit: Mapping[str, object]) -> dict[str, object]:
    """Add to the parameters of a live stream what the file in ``config_file`` sets."""
    path = explicit.get('config_file', DEFAULTS.config_file)
    source = explicit.get('source', DEFAULTS.source)
    if not isinstance(path, str) or not path or not isinstance(source, str):
        return dict(explicit)
    return {**find_simulator(source).parameters_of_config(path), **explicit}


def unused_parameters(names: Iterable[str], source: str, *,
                      with_added: bool = False) -> list[str]:
    """Return the ``names`` of parameters that a source does not use."""
    # source: name of a simulator, or ``file``.
    schema, simulator = schema_of(source, with_added=with_added), find_simulator(source)

    def is_used(name: str) -> bool:
        found = schema.find(name)
        if found.rule.used_by == NODE:
            return False
        owner, is_own = found.name.partition('.')[0], found.name not in NAMES
        if source == FILE:
            # What a recording is of is not known before it is opened.
            return found.rule.used_by != LIVE
        if is_own:
            return owner == simulator.name and found.rule.used_by != RECORDED
        if name in _GENERAL:
            return simulator.default_port is not None
        return name in simulator.uses or (
            found.rule.used_by != RECORDED and name not in SOURCE_PARAMETERS)

    return [name for name in names if not is_used(name)]


def implied_values(values: Mapping[str, object], base: Settings) -> dict[str, object]:
    """Return values that follow from a changed source: its present name, and its usual port."""
    source = values.get('source')
    if not isinstance(source, str) or source in ('', FILE):
        return {}
    simulator = find_simulator(source)
    implied: dict[str, object] = {'source': simulator.name}
    before = find_simulator(base.source).default_port
    if 'port' not in values and simulator.default_port and base.port == before:
        implied['port'] = simulator.default_port
    return implied
