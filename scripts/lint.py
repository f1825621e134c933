# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Run every linter; fail if one finds a fault or is missing, except those of a full ROS 2.

Linters of single files get only the files that changed since they were last found clean.
"""
from __future__ import annotations

import hashlib
import json
from pathlib import Path
import shutil
import subprocess
import sys

ROOT = Path(__file__).parents[1]
# File -> digest of what the linter found clean, for each linter.
CLEAN = ROOT / '.lint_cache' / 'clean.json'
# What the results depend on beside the file: settings, and the versions of the linters.
SETTINGS = [ROOT / 'pyproject.toml', ROOT / 'setup.cfg',
            *sorted((ROOT / 'requirements').glob('*.txt'))]
PYTHON_FOLDERS = ('state_sensor_ros', 'launch', 'test', 'bench', 'scripts', 'examples')
OWN_FOLDERS = ('state_sensor_ros', 'launch')
GITHUB = ROOT / '.github'
FORMS = GITHUB / 'ISSUE_TEMPLATE'
SCHEMAS = {
    'github-workflows': sorted((GITHUB / 'workflows').glob('*.yml')),
    'github-issue-forms': [FORMS / 'defect.yml', FORMS / 'wish.yml'],
    'github-issue-config': [FORMS / 'config.yml'],
    'citation-file-format': [ROOT / 'CITATION.cff'],
}
# Linters of whole trees; they keep caches of their own.
WHOLE = [
    ['ruff', 'check', '--output-format', 'concise', '.'],
    ['mypy', '--strict', 'state_sensor_ros'],
    ['ament_xmllint', 'package.xml'],
    ['ament_lint_cmake', 'CMakeLists.txt'],
]


def main() -> int:
    """
    Run the linters, with a line of result for each.

    :returns: exit code.
    """
    python = [path for folder in PYTHON_FOLDERS for path in sorted((ROOT / folder).rglob('*.py'))]
    own = [path for path in python if path.relative_to(ROOT).parts[0] in OWN_FOLDERS]
    manifest = 'from catkin_pkg.package import parse_package; parse_package("package.xml")'
    results = [_run(words) for words in WHOLE]
    results += [
        *(_run_changed(['check-jsonschema', '--builtin-schema', f'vendor.{schema}'], paths)
          for schema, paths in SCHEMAS.items()),
        _run_changed(['ament_flake8'], [*python, ROOT / 'setup.py']),
        _run_changed(['ament_pep257'], own),
        _run_changed(['ament_copyright'], [*python, *sorted((ROOT / 'cmake').iterdir())]),
        _run_changed(['hadolint'], [ROOT / 'Dockerfile']),
        _run([sys.executable, '-c', manifest], 'catkin_pkg'),
    ]
    return 0 if all(results) else 1


def _run(words: list[str], name: str = '') -> bool:
    name = name or words[0]
    if not shutil.which(words[0]):
        if name.startswith('ament_'):
            print(f'lint: {name} skipped: not on PyPI, part of a full ROS 2')
            return True
        print(f'lint: {name} failed: the program is not installed; run `make setup-all`')
        return False
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', errors='replace', check=False)
    if done.returncode:
        # Two of them list each file that they check.
        print('\n'.join(line for line in done.stdout.splitlines()
                        if not line.startswith(('checking ', '* '))))
    print(f'lint: {name} {"failed" if done.returncode else "clean"}', flush=True)
    return not done.returncode


def _run_changed(words: list[str], paths: list[Path]) -> bool:
    settings = b''.join(path.read_bytes() for path in SETTINGS) + sys.version.encode()
    digests = {
        str(path.relative_to(ROOT)): hashlib.sha256(settings + path.read_bytes()).hexdigest()
        for path in paths}
    caches = _read_caches()
    key = ' '.join(words)
    known = caches.get(key, {})
    changed = [name for name, digest in digests.items() if known.get(name) != digest]
    if not changed:
        print(f'lint: {words[0]} clean, no file has changed')
        return True
    is_clean = _run([*words, *changed])
    if is_clean and shutil.which(words[0]):
        CLEAN.parent.mkdir(exist_ok=True)
        CLEAN.write_text(json.dumps(caches | {key: digests}), encoding='utf-8')
    return is_clean


def _read_caches() -> dict[str, dict[str, str]]:
    try:
        caches = json.loads(CLEAN.read_text(encoding='utf-8'))
    except (FileNotFoundError, ValueError):
        return {}
    return caches if isinstance(caches, dict) else {}


if __name__ == '__main__':
    sys.exit(main())
