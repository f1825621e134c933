# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The number of tests that ran in each folder; a folder that can run and has none is a failure."""

import ast
from collections import Counter
from functools import cache
from importlib.util import find_spec
import re
import sys

PACKAGE = 'state_sensor_ros'
_IMPORT = re.compile(r'^(?:from ([\w.]+) import (\([^)]*\)|.*)|import (.+))', re.MULTILINE)
# pytest's exit codes of a run without a failure, and without tests.
_NO_FAILURE = (0, 5)
# Options that select tests: a folder without one is then intended.
_SELECTIONS = ('collectonly', 'keyword', 'markexpr', 'deselect', 'ignore_glob', 'lf')


def absent_modules(needs):
    """
    Return what cannot be collected.

    :param needs: path of a folder or file of tests to the modules that it imports.
    :returns: path to the first of its modules that is not installed, of those that have one.
    """
    found = {path: [module for module in modules if not _is_installed(module)]
             for path, modules in needs.items()}
    return {path: absent[0] for path, absent in found.items() if absent}


def absent_imports(folder, tried):
    """
    Return what cannot be collected because of an import at the top of a module.

    :param folder: of all tests; the package is beside it.
    :param tried: paths that are ignored already, relative to ``folder``.
    :returns: path of a test file to a module that it imports, also through other modules of the
        tests or of the package, and that is not installed.
    """
    imports = _Imports(folder)
    found = {}
    for path in sorted(folder.rglob('test_*.py')):
        name = path.relative_to(folder)
        if not {str(each) for each in (name, *name.parents)} & set(tried):
            absent = imports.absent(path)
            if absent:
                found[str(name)] = absent
    return found


class _Imports:
    """The modules that files import at their tops, found without running them."""

    def __init__(self, folder):
        self._package = folder.parent
        self._own = {path.stem: path for path in folder.rglob('*.py')}
        self._absent = {}
        self._files = {}

    def absent(self, path):
        """Return the first import of a file that is not installed, '' for none."""
        if path not in self._absent:
            # Two modules may import each other.
            self._absent[path] = ''
            text = path.read_text('utf-8')
            self._absent[path] = next(filter(None, (
                self._absent_of(name, text) for name in _imported(text))), '')
        return self._absent[path]

    def _absent_of(self, name, text):
        if name not in self._files:
            self._files[name] = self._file_of(name)
        if self._files[name] is not None:
            return self.absent(self._files[name])
        library = '.'.join(name.split('.')[:2]) if name.startswith('google.') \
            else name.partition('.')[0]
        is_here = library in sys.stdlib_module_names or _is_installed(library) \
            or not _is_imported(name, text)
        return '' if is_here else library

    def _file_of(self, name):
        """Return the file of a module of the tests or of the package, None for another."""
        place = self._package / name.replace('.', '/')
        paths = (self._own.get(name), place.with_suffix('.py'), place / '__init__.py')
        return next((path for path in paths if path is not None and path.is_file()), None)


def _imported(text):
    """Yield the names of modules, and what may be modules, that a text imports at its top."""
    for first, names, modules in _IMPORT.findall(text):
        for module in filter(None, [first, *map(str.strip, modules.split(','))]):
            parts = module.partition(' as ')[0].split('.')
            yield from ('.'.join(parts[:i + 1]) for i in range(len(parts)))
        if first.startswith(PACKAGE):
            for name in re.findall(r'\w+', names):
                yield f'{first}.{name}'


def _is_imported(name, text):
    """Return whether a text imports a module indeed: a line of a docstring may look like it."""
    return any(
        (isinstance(node, ast.ImportFrom) and (node.module or '').startswith(name))
        or (isinstance(node, ast.Import) and any(
            alias.name.startswith(name) for alias in node.names))
        for node in ast.parse(text).body)


@cache
def _is_installed(module):
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _need(reason):
    """Return the reason of a skipped test, the same for each way to name a missing library."""
    found = re.search(r"could not import '([^'.]+)", reason) \
        or re.search(r'needs(?: the package)? ([\w-]+)', reason) \
        or re.search(r'(\S+) is not installed', reason)
    return f'without {found[1]}' if found else reason.removeprefix('Skipped: ')


def _number_of_tests(path):
    """Return the number of test functions in a file or a folder."""
    files = path.rglob('test_*.py') if path.is_dir() else [path]
    return sum(isinstance(node, ast.FunctionDef) and node.name.startswith('test_')
               for file in files for node in ast.parse(file.read_text('utf-8')).body)


class FolderCounts:
    """
    Plugin of pytest, for the process that reports.

    :param folder: of all tests.
    :param absent: result of :func:`absent_modules`, paths relative to ``folder``.
    """

    def __init__(self, config, folder, absent):
        self._config, self._folder, self._absent = config, folder, absent
        self._n_ran = Counter()
        self._n_skipped = Counter()
        self._empty = []

    def pytest_runtest_logreport(self, report):
        if report.when == 'call' and report.outcome in ('passed', 'failed'):
            file = self._config.rootpath / report.nodeid.partition('::')[0]
            self._n_ran[self._name(file.parent)] += 1

        elif report.skipped and isinstance(report.longrepr, tuple):
            self._n_skipped[_need(report.longrepr[2])] += 1

    def pytest_sessionfinish(self, session, exitstatus):
        if exitstatus in _NO_FAILURE and not any(
                self._config.getoption(name, None) for name in _SELECTIONS):
            self._empty = [name for name in map(self._name, self._expected())
                           if not self._n_ran[name]]
        if self._empty:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        counts = [f'{name} {number}' for name, number in sorted(self._n_ran.items())]
        terminalreporter.write_line(f'tests that ran: {", ".join(counts) or "none"}')
        for path, module in self._absent.items():
            n_tests = _number_of_tests(self._folder / path)
            terminalreporter.write_line(
                f'not collected: {path}, without {module} (test functions: {n_tests})')
        for need, number in sorted(self._n_skipped.items()):
            terminalreporter.write_line(f'tests skipped: {number}, {need}')
        for name in self._empty:
            terminalreporter.write_line(
                f'error: {name}: found no test that ran; expected one or more', red=True)

    def _expected(self):
        """Return the folders that the arguments of pytest include and that can run."""
        arguments = self._paths(self._config.args)
        ignored = self._paths(self._config.getoption('ignore') or ())
        ignored += [self._folder / path for path in self._absent]
        folders = {path.parent for path in self._folder.rglob('test_*.py') if path not in ignored}
        return [folder for folder in sorted(folders)
                if {folder, *folder.parents} & set(arguments)
                and not {folder, *folder.parents} & set(ignored)]

    def _paths(self, words):
        base = self._config.invocation_params.dir
        return [(base / word).resolve() for word in map(str, words)]

    def _name(self, folder):
        """Return the first folder below the folder of all tests, or that one."""
        inner = folder.relative_to(self._folder).parts if folder != self._folder else ()
        return inner[0] if inner else self._folder.name
