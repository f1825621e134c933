# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The end of a pipeline without topics or bags."""


class SilentSink:
    """Has a fixed subscriptions and discards the messages."""

    def __init__(self, subscriptions):
        self._subscriptions = subscriptions

    def subscriptions(self):
        return self._subscriptions

    def open(self, topics):
        pass

    def shut(self, topics):
        pass

    def publish(self, messages, stamp_ns):
        pass
