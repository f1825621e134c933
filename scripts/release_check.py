# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Name what is missing before a release: one version everywhere, its changelog, no placeholders.

`--write` copies the version of the package's `__init__.py`, the one place where it is set, to the
files that need a literal.
"""
from __future__ import annotations

from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).parents[1]
VERSION = re.search(r"^__version__ = '(.+)'$",
                    (ROOT / 'state_sensor_ros' / 'version.py').read_text(), re.MULTILINE)[1]
# File -> what stands around the version in it.
COPIES = {'package.xml': (r'<version>', r'</version>'), 'CITATION.cff': (r'\nversion: ', r'\n')}
# Addresses that do not exist: RFC 2606 reserves the first, GitHub the second.
PLACEHOLDERS = ('example.invalid', 'users.noreply.github.com')
ABOUT = ('scripts/release_check.py',)


def main() -> int:
    """
    Write the copies if asked to, then print what is missing.

    :returns: exit code: 1 if something is missing.
    """
    if sys.argv[1:] not in ([], ['--write']):
        print(f'release-check: found {" ".join(sys.argv[1:])}; expected --write or nothing',
              file=sys.stderr)
        return 2
    if sys.argv[1:]:
        _write_copies()
    missing = [*_wrong_copies(), *_changelog(), *_placeholders(), *_changed_files()]
    for line in missing:
        print(f'release-check: {line}')
    if not missing:
        print(f'release-check: {VERSION} can be released')
    return 1 if missing else 0


def _write_copies() -> None:
    for name, (before, after) in COPIES.items():
        path = ROOT / name
        text = path.read_text(encoding='utf-8')
        path.write_text(
            re.sub(f'({before})[^<\n]*({after})', rf'\g<1>{VERSION}\g<2>', text, count=1),
            encoding='utf-8')


def _wrong_copies() -> list[str]:
    lines = []
    for name, (before, after) in COPIES.items():
        text = (ROOT / name).read_text(encoding='utf-8')
        match = re.search(f'{before}([^<\n]*){after}', text)
        found = match[1] if match else 'no version'
        if found != VERSION:
            lines.append(f'{name}: found {found}; expected {VERSION}, as in version.py '
                         '(python3 scripts/release_check.py --write)')
    return lines


def _changelog() -> list[str]:
    text = (ROOT / 'CHANGELOG.rst').read_text(encoding='utf-8')
    headings = re.findall(r'^(\S.*)\n-+$', text, re.MULTILINE)
    found = headings[0] if headings else 'no heading'
    if re.fullmatch(re.escape(VERSION) + r' \(\d{4}-\d{2}-\d{2}\)', found):
        return []
    return [f'CHANGELOG.rst: found {found}; expected {VERSION} with its date']


def _placeholders() -> list[str]:
    names = _git('ls-files').splitlines()
    lines = []
    for name in names:
        path = ROOT / name
        is_large = path.is_file() and path.stat().st_size > 1_000_000
        if name in ABOUT or is_large or not path.is_file():
            continue
        text = path.read_text(encoding='utf-8', errors='replace')
        found = [each for each in PLACEHOLDERS if each in text]
        if found:
            lines.append(f'{name}: found the placeholder {" and ".join(found)}; expected the '
                         'address of the project')
    return lines


def _changed_files() -> list[str]:
    changed = _git('status', '--porcelain').splitlines()
    return [f'git: found {len(changed)} changed files; expected none'] if changed else []


def _git(*words: str) -> str:
    return subprocess.run(['git', *words], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout


if __name__ == '__main__':
    sys.exit(main())
