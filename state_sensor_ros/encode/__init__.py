# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""One frame to the serialised bytes of each topic; what the rest of the package uses of it."""

from state_sensor_ros.encode.encoder import Encoder
from state_sensor_ros.encode.scene import Messages
from state_sensor_ros.encode.topics import Demand, EVERYTHING, fixed_topics, needs_of, Qos, Topic
from state_sensor_ros.encode.verification import Sample, samples, verify

__all__ = ['EVERYTHING', 'Demand', 'Encoder', 'Messages', 'Qos', 'Sample', 'Topic', 'fixed_topics',
           'needs_of', 'samples', 'verify']
