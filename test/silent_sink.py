# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# flake8: noqa: A003
"""The end of a pipeline without topics or bags."""


class SilentSink:
    """Has a fixed demand and discards the messages."""

    def __init__(self, demand):
        self._demand = demand

    def demand(self):
        return self._demand

    def open(self, topics):
        pass

    def shut(self, topics):
        pass

    def publish(self, messages, stamp_ns):
        pass
