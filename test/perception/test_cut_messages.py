# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages out of which unseen objects are cut: byte by byte those that are laid out anew."""

from itertools import compress

from budgets import first_of
from encode_world import definitions
import pytest
from sensed_scenes import scene

from state_sensor_ros.cdr.patch_buffer import ArrayCut, PatchBuffer
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import AUTOWARE_OBJECTS, OUTPUTS, parse_settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import Subscriptions

PLACES = [(8.0 + 5.0 * i, -9.0 + 4.0 * (i % 4), 0.4 * i) for i in range(9)]


class AnewArray:
    """Some elements of an array, laid out anew for each message."""

    def __init__(self, instances, starts, data, patches):
        self.instances = instances

    def message(self, kept, numbers):
        buffer = PatchBuffer(is_array=True)
        buffer.update([self.instances[0], *compress(self.instances[1:], kept)])
        for table in buffer.tables:
            buffer.patch(table, numbers[table])
        [begin], [end] = buffer.message_bounds()
        return buffer.tobytes(begin, end)


def frames():
    """Return frames whose objects come and go; some have none."""
    counts = (9, 9, 9, 4, 9, 0, 0, 9, 1, 1, 1, 9)
    return [scene(PLACES[:n], game_time=1.0 + 0.1 * i) for i, n in enumerate(counts * 3)]


def encoded(global_frame, perception):
    settings = parse_settings({
        'outputs': OUTPUTS, 'autoware_objects': AUTOWARE_OBJECTS, 'global_frame': global_frame,
        **{f'perception.{name}': value for name, value in perception.items()}})
    encoder, registry = Encoder(settings, definitions()), Registry()
    subscriptions = Subscriptions(frozenset(
        topic.name for topic in encoder.topics if topic.is_perceived), {})
    return [[(topic.name, data) for topic, data in encoder.encode(
        frame, registry.update(frame), round(frame.game_time * 1e9), subscriptions)
        if topic.is_perceived]
        for frame in frames()]


# The elements begin at another phase with a longer name.
@pytest.mark.parametrize(('global_frame', 'perception'), first_of(n_always=3, cases=[
    ('world_of_x', {'position_std': 0.4, 'missing': 0.3, 'ghosts': 0.7}),
    ('odom', {'missing': 1.0}), ('map', {'missing': 0.7, 'ghosts': 1.0}),
    ('map', {'missing': 0.5}), ('world_of_x', {'ghosts': 2.0}),
    ('odom', {'missing': 1.0, 'ghosts': 2.0})]), ids=str)
def test_messages_are_those_that_are_laid_out_anew(monkeypatch, global_frame, perception):
    found = encoded(global_frame, perception)
    with monkeypatch.context() as patched:
        patched.setattr(ArrayCut, '__init__', AnewArray.__init__)
        patched.setattr(ArrayCut, 'message', AnewArray.message)
        expected = encoded(global_frame, perception)
    assert found == expected
    assert {name for each in found for name, _ in each} == {
        '/perception/object_recognition/tracking/objects',
        '/perception/object_recognition/detection/objects',
        '/perception/object_recognition/objects', '~/objects', '~/detections'}
