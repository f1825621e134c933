# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The directions of the architecture: which folder may import what."""

import ast
from functools import cache
from graphlib import TopologicalSorter

from paths import ROOT

PACKAGE = ROOT / 'state_sensor_ros'
NAME = PACKAGE.name
MODULES = sorted(PACKAGE.rglob('*.py'))
ROOT_MODULES = {path.stem for path in PACKAGE.glob('*.py')} - {'__init__', '__main__'} \
    | {'__version__'}
# A folder may import the modules of the root and the folders named here; __main__ the commands.
MAY_IMPORT = {
    'cdr': set(),
    'control': set(),
    'objects': set(),
    'perception': {'objects'},
    'topics': {'cdr', 'control', 'objects', 'perception'},
    'pipeline': {'topics'},
    'connections': set(),
    'files': {'cdr', 'objects', 'topics', 'pipeline'},
    'simulators': {'control', 'connections', 'cdr', 'topics', 'pipeline', 'files'},
    'simulators/monodrive': {'control', 'connections', 'files', 'simulators'},
    'emulator': {'simulators/monodrive'},
    **{f'simulators/{name}': {
        'control', 'connections', 'cdr', 'topics', 'pipeline', 'files', 'emulator', 'simulators'}
       for name in ('carla', 'carla9', 'sumo')},
    'simulators/osi': {'control', 'connections', 'files', 'simulators'},
    'drawing': {'objects'},
    'library': {'objects', 'perception', 'pipeline', 'connections', 'files',
                'simulators', 'drawing'},
    'viewing': {'objects', 'connections', 'simulators', 'drawing'},
    'evaluation': {'objects', 'topics', 'pipeline', 'files'},
    'ros': {'connections', 'control', 'cdr', 'objects', 'topics', 'pipeline', 'files',
            'simulators'},
    'commands': {'cdr', 'topics', 'pipeline', 'files',
                 'simulators', 'simulators/monodrive', 'library', 'drawing', 'viewing', 'ros',
                 'evaluation', 'emulator'}}
# The package exports the names of the library; a frame is shown as a table by it.
OF_THE_PACKAGE = {'__main__.py': {'commands'}, '__init__.py': {'library'},
                  'frame.py': {'library'}}
ROS_PACKAGES = {'rclpy', 'rcl_interfaces', 'diagnostic_msgs', 'geometry_msgs', 'tf2_msgs',
                'tf2_ros', 'nav_msgs', 'std_msgs', 'sensor_msgs', 'visualization_msgs',
                'simulation_interfaces', 'std_srvs', 'lifecycle_msgs', 'rosgraph_msgs'}
# Outside these folders the values are computed: no sockets, processes, threads or command line.
SOCKETS = {'connections', 'emulator', 'simulators/carla'}
# Imported inside functions: slow to load, or missing in an installation that can do without.
LATE = {'matplotlib', 'plotly', 'pyarrow', 'pandas', 'rerun', 'carla', 'libsumo', 'traci',
        'sumolib', 'distributed', 'trackeval', 'scipy', 'PIL', 'av', 'osi3', 'google', 'mcap',
        'argcomplete', 'backports', 'compression', 'rosbags', 'ruamel', 'lz4', 'mcap_protobuf',
        'tqdm', 'multiprocessing', f'{NAME}.emulator'}
POSIX = {'fcntl', 'termios'}
WITHOUT_EFFECTS = {'', 'cdr', 'objects', 'perception', 'topics', 'drawing',
                   *(f'simulators/monodrive/{name}.py' for name in (
                       'wire', 'schema', 'frames', 'forms', 'wheels', 'encoding'))}
# The longest wait, in source.py, is a constant of threading; a signal is sent by a timer.
WITH_THREADS = {'source.py', 'ends.py'}
EFFECTS = {'socket', 'subprocess', 'argparse', 'threading', 'selectors', 'asyncio'}


@cache
def nodes_of(path):
    """Return all nodes of a module, itself first."""
    return list(ast.walk(ast.parse(path.read_text())))


def statements_of(path):
    """Return the imports in a module, with those inside functions."""
    return [node for node in nodes_of(path) if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def imported(path, *, with_types=True):
    """Return the modules that ``path`` imports, with those inside functions."""
    names = set()
    of_types = set() if with_types else {
        id(node) for block in nodes_of(path) if isinstance(block, ast.If)
        and getattr(block.test, 'id', '') == 'TYPE_CHECKING' for node in ast.walk(block)}
    for node in statements_of(path):
        if id(node) in of_types:
            continue
        names |= names_of(node)
    return names


def names_of(node):
    """Return the modules that a statement imports; empty for another one."""
    if isinstance(node, ast.ImportFrom):
        return {node.module, *(f'{node.module}.{alias.name}' for alias in node.names)}
    return {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()


def packages(path):
    return {name.split('.')[0] for name in imported(path)}


def own_modules(path):
    """Return what is imported of this package, without its name."""
    return {name.removeprefix(f'{NAME}.') for name in imported(path)
            if name.startswith(f'{NAME}.')}


def place(path):
    return path.relative_to(PACKAGE).as_posix()


def folder(path):
    """Return the folder of a module that has a rule, empty for one of the root."""
    parts = place(path).split('/')[:-1]
    nested = '/'.join(parts[:2])
    return nested if nested in MAY_IMPORT or parts[:1] == ['simulators'] else parts[0] \
        if parts else ''


def test_imports_every_folder_has_a_rule():
    assert {folder(path) for path in MODULES} == {'', *MAY_IMPORT}


def test_imports_follow_the_directions():
    wrong = []
    for path in MODULES:
        where = folder(path)
        allowed = {*ROOT_MODULES, *((where, *MAY_IMPORT[where]) if where else ()),
                   *OF_THE_PACKAGE.get(place(path), ())}
        for name in own_modules(path):
            parts = name.split('.')
            top = parts[0] if '/'.join(parts[:2]) not in MAY_IMPORT else '/'.join(parts[:2])
            if top not in allowed:
                wrong.append(f'{place(path)}: {name}')
    assert not wrong, '\n'.join(wrong)


def test_imports_effects_are_where_they_belong():
    wrong = []
    for path in MODULES:
        where = folder(path)
        refused = set() if where == 'ros' else set(ROS_PACKAGES)
        if place(path) not in WITH_THREADS and {where, place(path)} & WITHOUT_EFFECTS:
            refused |= EFFECTS
        if where not in SOCKETS:
            refused.add('socket')
        wrong += [f'{place(path)}: {name}' for name in packages(path) & refused]
    assert not wrong, '\n'.join(wrong)


def test_imports_folders_form_no_loop():
    order = list(MAY_IMPORT)
    for name, others in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(name) for other in others)


def test_imports_modules_form_no_loop():
    """With the imports inside functions, but not those of types only."""
    names = {f'{NAME}.{".".join(path.relative_to(PACKAGE).with_suffix("").parts)}'
             .removesuffix('.__init__'): path for path in MODULES}
    graph = {}
    for name, path in names.items():
        own = imported(path, with_types=False) & names.keys()
        # It needs no name of a package whose module it imports.
        graph[name] = own - {name, NAME} - {module.rpartition('.')[0] for module in own}
        if place(path) in OF_THE_PACKAGE:
            graph[name] = {each for each in graph[name] if 'library' not in each.split('.')}
    TopologicalSorter(graph).prepare()


def test_imports_inside_functions_are_of_slow_or_optional_libraries():
    modules = {f'{NAME}.{".".join(path.relative_to(PACKAGE).with_suffix("").parts)}': path
               for path in MODULES}

    @cache
    def is_late(name):
        """Return whether a module, or one that it imports, may be imported late."""
        package, inner = (*name.split('.'), '')[:2]
        if {package, f'{package}.{inner}'} & (LATE | ROS_PACKAGES | POSIX):
            return True
        return name in modules and any(
            is_late(other) for statement in nodes_of(modules[name])[0].body
            for other in names_of(statement))

    functions = {path: [range(node.lineno, node.end_lineno) for node in nodes_of(path)
                        if isinstance(node, ast.FunctionDef)] for path in MODULES}
    assert not [
        f'{place(path)}:{statement.lineno}' for path in MODULES
        for statement in statements_of(path) if not any(map(is_late, names_of(statement)))
        and any(statement.lineno - 1 in lines for lines in functions[path])
        and place(path) not in OF_THE_PACKAGE]
