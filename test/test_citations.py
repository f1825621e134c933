# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Code cites pages of the documentation, with a heading as anchor; every citation resolves.

Citations begin with the folder: ``doc/`` or ``bench/``, then the page, then ``#`` and the heading
as in links.
"""

import re

from paths import ROOT
from test_documents import anchors

FOLDERS = ('state_sensor_ros', 'launch', 'scripts', 'bench', 'fuzz', 'test', 'msg', 'config',
           'requirements')
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*')
               if path.suffix in ('.py', '.sh', '.msg', '.yaml', '.txt')) + [
    ROOT / name for name in ('CMakeLists.txt', 'Makefile', 'package.xml', 'pyproject.toml',
                             'setup.cfg', 'setup.py')]
CITATION = re.compile(r'\b((?:doc/[\w/-]+|bench/README)\.md)(?:#([\w-]+))?')
# Pages that are not in the repository.
ELSEWHERE = re.compile(r'\b(PROTOCOL|INTERFACE)[\s#]+\d|\bPITFALLS\b|\bseed 00\d')


def place(path):
    return path.relative_to(ROOT).as_posix()


def unresolved(text):
    """Return the citations in ``text`` that name no page, or no heading of it."""
    return [match[0] for match in CITATION.finditer(text)
            if not (page := ROOT / match[1]).is_file()
            or (match[2] and match[2] not in anchors(page))]


def test_citations_resolve():
    wrong = {place(path): found for path in FILES
             if (found := unresolved(path.read_text(encoding='utf-8')))}
    assert not wrong


def test_citations_of_missing_pages_and_headings_are_found():
    assert unresolved(f'{"doc"}/protocol/units.md#axes, {"doc"}/interface.md') == []
    wrong = [f'{"doc"}/protocol/units.md#no-such', f'{"doc"}/no_page.md',
             f'{"bench"}/README.md#no-such']
    assert unresolved(' '.join(wrong)) == wrong


def test_citations_of_pages_that_are_not_here():
    found = {place(path): ELSEWHERE.findall(path.read_text(encoding='utf-8')) for path in FILES}
    assert not {name: cited for name, cited in found.items() if cited}
