# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Exceptions that the program does not expect: counted, shown, logged; the node goes on."""


import pytest
from rig import changed_program, check_counters_never_decrease, framed, state

# By name: the function, and what replaces it; it fails for an actor of that name.
DEFECTS = {
    'encode': ('topics.encoder', 'Encoder', 'encode', """
    if 'bad_encode' in args[0].names:
        fail()
    return original(self, *args, **options)
"""),
    'publish': ('ros.sink', 'TopicSink', 'publish', """
    original(self, args[0][:1], args[1])
    if any(b'bad_publish' in data for _, data in args[0]):
        fail()
    return original(self, args[0][1:], args[1])
"""),
    'update': ('naming', 'Registry', 'update', """
    result = original(self, *args, **options)
    if 'bad_update' in args[0].names:
        fail()
    return result
"""),
    'close': ('pipeline.actors', 'ActorTopics', '_close', """
    if args[0] == 'bad_close' and not hasattr(self, 'has_failed'):
        self.has_failed = True
        fail()
    return original(self, *args, **options)
"""),
    'decode': ('simulators.monodrive.frames', 'Decoder', 'frames', """
    if b'"bad_decode"' in args[0]:
        fail()
    return original(self, *args, **options)
"""),
}


@pytest.fixture
def defective(bench, tmp_path):
    """Provide a function that starts a node in which functions are replaced."""
    def start(*defects, **parameters):
        return bench(program=changed_program(tmp_path / 'defective.py', *defects),
                     debug_drawing=True, **parameters)
    return start


def ego(number):
    return state('ego_car', position=(100.0 * number, 0.0, 0.0), tags=('vehicle', 'ego'))


def test_an_exception_costs_its_frame_and_nothing_else(defective):
    rig = defective(*DEFECTS.values(), overflow='block', actor_timeout=2.0)
    subscribe = rig.listener.subscribe
    markers = subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
    actors = subscribe('/state_sensor/actors', 'state_sensor_ros/ActorArray', latched=True)
    odometry = {name: subscribe(f'/state_sensor/actors/{name}/odometry', 'nav_msgs/Odometry')
                for name in ('ego_car', *(f'new_{name}' for name in DEFECTS))}

    def send(*states):
        rig.simulator.send(framed(rig.n_sent, ego(rig.n_sent), *states))
        rig.n_sent += 1
        rig.n_frames += 1
        rig.listener.spin_for(0.03)

    rig.simulator.accept()
    rig.listener.until(lambda: (send(), rig.frames and rig.tf and markers and actors
                                and odometry['ego_car'])[-1], what='all topics')
    before = rig.wait_until_counted()
    for name in DEFECTS:
        n_markers, n_actors = len(markers), len(actors)
        newcomer = state(f'new_{name}')
        for _ in range(3):
            send(state(f'bad_{name}'))
            send(newcomer)
        # Topics that were closed, or half opened, are opened again.
        rig.listener.until(lambda own=newcomer, received=odometry[f'new_{name}']:
                           (send(own), received)[-1], what=f'a new topic behind {name}')
        # Beyond the time-out of the actor of the failing frames.
        rig.n_sent += 100
        for _ in range(5):
            send(newcomer)
        values = rig.wait_until_counted()
        rig.listener.until(lambda: rig.frames[-1].sample_count == rig.n_sent, what='~/frame')
        stamp = rig.frames[-1].header.stamp
        for received, stamp_of in ((rig.tf, lambda message: message.transforms[0].header.stamp),
                                   (odometry['ego_car'], lambda message: message.header.stamp),
                                   (odometry[f'new_{name}'], lambda message: message.header.stamp),
                                   (markers, lambda message: message.markers[-1].header.stamp)):
            rig.listener.until(lambda h=received, s=stamp_of, last=stamp: s(h[-1]) == last)
        rig.listener.until(lambda own=name: [actor.name for actor in actors[-1].actors]
                           == ['ego_car', f'new_{own}'], what='the registry')
        n_defects = int(values['internal errors']) - int(before['internal errors'])
        assert n_defects == (1 if name == 'close' else 3), name
        n_skipped = int(values['frames skipped']) - int(before['frames skipped'])
        assert n_skipped == n_defects, name
        assert values['simulator restarts'] == '0'
        assert len(actors) > n_actors
        # The first array behind an exception empties displays, and no later one does.
        deletes = [any(marker.action == 3 for marker in array.markers)
                   for array in markers[n_markers:]]
        assert 1 <= deletes.count(True) <= n_defects, name
        assert 'RuntimeError: provoked' in values['last error']
        before = values
    n_defects = int(before['internal errors'])
    check_counters_never_decrease(rig.diagnostics)
    assert rig.node.is_alive
    assert rig.node.end()[0] == 0
    # The log has few of them in a short time.
    assert 1 <= rig.node.log.count('Traceback') <= n_defects
    assert 'in replacement_0' in rig.node.log
    assert 'fail()' in rig.node.log


def test_an_exception_of_deferred_work_costs_no_frame(defective):
    """A topic that cannot be created: all other topics go on."""
    rig = defective(('ros.sink', 'TopicSink', '_create', """
    if 'bad' in args[0].name:
        fail()
    return original(self, *args, **options)
"""), overflow='block')
    odometry = rig.listener.subscribe('/state_sensor/actors/ego_car/odometry', 'nav_msgs/Odometry')
    newcomer = rig.listener.subscribe('/state_sensor/actors/newcomer/odometry',
                                      'nav_msgs/Odometry')
    rig.simulator.accept()

    def send():
        rig.send_packet(framed(rig.n_sent, ego(rig.n_sent), state('bad'), state('newcomer')))
        rig.n_sent += 1
        rig.listener.spin(0.05)

    rig.listener.until(lambda: (send(), rig.frames and odometry and newcomer)[-1])
    values = rig.wait_until_counted()
    assert (values['frames skipped'], values['frames dropped']) == ('0', '0')
    # Odometry and lane state of that actor.
    assert values['internal errors'] == '2'
    assert 'RuntimeError: provoked' in values['last error']
    assert rig.node.end()[0] == 0
    assert 'Traceback' in rig.node.log
