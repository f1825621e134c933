# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Find the installed files: message definitions, sample, configuration."""
from pathlib import Path

PACKAGE = 'state_sensor_ros'


def share_file(*parts: str) -> Path:
    """
    Return the path of a file or folder that is installed with the package.

    :param parts: path below the package's share folder, such as ``'msg', 'ControlState.msg'``.
    :returns: the path in the source tree, in the pip package or in the ament prefix, whichever
        this module runs from.
    :raises FileNotFoundError: if the file is in none of them.
    """
    folders = _share_folders(Path(__file__))
    for folder in folders:
        path = folder.joinpath(*parts)
        if path.exists():
            return path
    searched = ', '.join(str(folder) for folder in folders)
    raise FileNotFoundError(
        f'{PACKAGE}: found no {"/".join(parts)} in {searched}; expected it to be installed')


def _share_folders(module: Path) -> list[Path]:
    # A build with --symlink-install leaves a link here that leads into the source tree.
    source = module.resolve().parent.parent
    if (source / 'package.xml').is_file():
        return [source]
    ament = [parent / 'share' / PACKAGE for parent in module.absolute().parents]
    return [module.absolute().parent / 'data', *(folder for folder in ament if folder.is_dir())]
