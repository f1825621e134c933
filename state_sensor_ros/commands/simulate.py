# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor simulate`: the mock server of a simulator as a program."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.format_options import read_options_of
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.simulators.monodrive.mock_server import open_mock_server


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """Serve until everything is sent; a server of samples on request, until a signal."""
    args.read_options = read_options_of(args)
    interruption.unblock_errors()
    interruption.is_endless = True
    with open_mock_server(args) as server:
        for name, port in server.addresses():
            if not args.quiet:
                print_output(f'{name} on {args.bind}:{port}')
        server.wait()
