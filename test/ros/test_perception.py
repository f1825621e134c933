# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Perceived objects on topics: parameters that change while the node runs, and warnings."""

from rig import NodeProcess, packet, Remote
from test_stack_outputs import content

TRUE = '/perception/object_recognition/ground_truth/objects'
TRACKED = '/perception/object_recognition/tracking/objects'
TYPE = 'autoware_perception_msgs/TrackedObjects'


def stamp_of(message):
    return message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec


class Drive:
    """Frames of a car, and the messages of both topics."""

    def __init__(self, simulator, listener):
        self._simulator, self._listener, self._number = simulator, listener, 0
        self.true, self.tracked = (listener.subscribe(topic, TYPE) for topic in (TRUE, TRACKED))

    def until(self, holds, what):
        """Send frames until the last message of each topic is as expected."""
        def sent():
            self._simulator.send(packet(content(self._number), sample_count=self._number + 1,
                                        game_time=1.0 + self._number * 0.05))
            self._number += 1
            # One spin takes one message.
            for _ in range(4):
                self._listener.spin(0.02)
            return self.true and self.tracked and holds(self.true[-1], self.tracked[-1])
        self._listener.until(sent, what=what)


def positions(message):
    return [(place.x, place.y) for place in (
        each.kinematics.pose_with_covariance.pose.position for each in message.objects)]


def covariances(message):
    return [each.kinematics.pose_with_covariance.covariance[0] for each in message.objects]


def test_perception_changes_while_the_node_runs(domain, listener, simulator):
    drive = Drive(simulator, listener)
    with NodeProcess(domain, port=simulator.port, outputs=['autoware'],
                     autoware_objects=['ground_truth', 'tracking'],
                     **{'perception.missing': 1.0, 'perception.seed': 4}) as node:
        simulator.accept()
        remote = Remote(listener)
        drive.until(lambda true, found: len(true.objects) == 1 and not found.objects,
                    'a missed object')
        assert remote.set('perception.missing', 0.0).successful
        drive.until(lambda true, found: stamp_of(true) == stamp_of(found)
                    and positions(true) == positions(found), 'the object as it is')
        assert remote.set('perception.position_std', 0.5).successful
        drive.until(lambda true, found: covariances(found) == [0.25]
                    and stamp_of(true) == stamp_of(found) and positions(true) != positions(found)
                    and covariances(true) == [1e-9], 'noise with its variance')
        assert remote.set('perception.position_std', 0.0).successful
        assert remote.set('perception.ghosts', 5.0).successful
        drive.until(lambda true, found: len(found.objects) > 3 and len(true.objects) == 1,
                    'ghosts')
        assert remote.set('perception.ghosts', 0.0).successful
        # Of five frames.
        assert remote.set('perception.delay', 0.25).successful
        drive.until(lambda true, found: stamp_of(true) - stamp_of(found) == 250_000_000
                    and len(found.objects) == 1, 'an object of five frames ago')
        assert remote.set('perception.delay', 0.0).successful
        drive.until(lambda true, found: stamp_of(true) == stamp_of(found), 'no delay')
        stamps = [stamp_of(message) for message in drive.tracked]
        assert stamps == sorted(set(stamps))
        refused = remote.set('perception.missing', 1.5)
        assert not refused.successful
        assert 'perception.missing' in refused.reason
        assert node.is_alive


def test_perception_that_no_output_uses_is_named_at_start(domain, listener):
    with NodeProcess(domain, outputs=['vision'], **{
            'perception.velocity_std': 0.3, 'perception.missing': 0.1}) as node:
        listener.until(lambda: 'no output uses' in node.log or listener.spin(0.1), what='a line')
        [line] = [line for line in node.log.splitlines() if 'no output uses' in line]
    assert line.endswith('no output uses the parameters perception.velocity_std')


def test_perception_without_an_ego_is_one_warning(domain, listener, simulator):
    drive = Drive(simulator, listener)
    with NodeProcess(domain, port=simulator.port, outputs=['autoware'], ego_tag='none_has_it',
                     autoware_objects=['ground_truth', 'tracking'],
                     **{'perception.range': 1.0}) as node:
        simulator.accept()
        drive.until(lambda true, found: len(true.objects) == len(found.objects) == 2,
                    'both objects')
        assert node.log.count('perception: found no ego') == 1
