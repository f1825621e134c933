# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Random sequences of everything that may happen to one node, compared with a small model of it.

``--budget`` sets the time, ``STATE_SENSOR_PROPERTY_SEED`` another seed.
"""

from contextlib import suppress
from dataclasses import dataclass, field
import itertools
import json
import os
import random
import struct
import time

from budgets import tries
from rig import arrayed, END_S, Managed, NodeProcess, packet, Remote, state, statuses

BAD_OBJECTS = (b'{}', b'{"frame": 3}', b'{"frame": "]}, {"}', b'{"frame": [], "game_time": -1}',
               b'{"frame": [], "game_time": 1e300}')
BUDGET_S = tries(1)
MIN_STEPS = 5
SEED = int(os.environ.get('STATE_SENSOR_PROPERTY_SEED', '1'))
LIMIT = 6
ACTOR_TIMEOUT_S = 2.0
N_KINDS = 3
PARAMETERS = {'overflow': 'block', 'max_actor_topics': LIMIT, 'actor_timeout': ACTOR_TIMEOUT_S,
              'stale_after': 5.0, 'reconnect_min': 0.01, 'reconnect_max': 0.05, 'queue_size': 4,
              'max_frame_bytes': 1 << 20}
# Reports are 20 times as frequent: a step takes as long as its report.
PROGRAM = """
import sys

from state_sensor_ros.ros import node
from state_sensor_ros.ros.main import main

node._DIAGNOSTICS_PERIOD_S = 0.05
sys.exit(main())
"""
NAMES = ('ego', 'car-1', 'car.1', 'car 1', 'car!1', 'car_1', '車', '', 'map', '3rd', 'x' * 300,
         'vehicle.tesla.model3_12', 'vehicle.tesla.model3.12', 'walker.pedestrian.0001',
         'traffic.traffic_light_7', 'a/b', "driver's", 'quote"d', 'brace{[', 'car_1_2')
TAGS = ('vehicle', 'car', 'Parked', 'ego')


@dataclass
class Model:
    """What the counters have to be, computed from what was sent."""

    received: int = 0
    published: int = 0
    skipped: int = 0
    dropped: int = 0
    repeated: int = 0
    restarts: int = 0
    missed: int = 0
    dropped_actors: int = 0
    duplicates: int = 0
    reconnects: int = 0
    protocol_errors: int = 0
    cut_packets: int = 0
    n_with_tags: int = 0
    desired: tuple = ()
    undesired: tuple = ()
    _game_time: float = -1.0
    _sample_count: int = 0
    _n_lost: int = 0
    _is_resuming: bool = False

    def resume(self):
        """Activate: samples between two streams are not missed."""
        self._is_resuming, self._n_lost = True, 0

    def restart(self):
        """Configure: everything begins anew."""
        fresh = Model(desired=self.desired, undesired=self.undesired)
        self.__dict__.update(fresh.__dict__)

    def bad(self):
        self.received += 1
        self.skipped += 1
        self._n_lost += 1

    def good(self, game_time, sample_count, tags, dropped_actors=0, duplicates=0):
        self.received += 1
        self.published += 1
        self.dropped_actors += dropped_actors
        self.duplicates += duplicates
        restarted = game_time < self._game_time or 0 < sample_count < self._sample_count
        if restarted:
            self.restarts += 1
            self._sample_count = 0
        if sample_count:
            if self._sample_count and not self._is_resuming:
                self.missed += max(sample_count - self._sample_count - 1 - self._n_lost, 0)
            self._sample_count = sample_count
        self._is_resuming, self._n_lost = not sample_count, 0
        if not restarted and game_time == self._game_time:
            self.repeated += 1
        self._game_time = game_time
        self.n_with_tags = sum(self._passes(own) for own in tags)

    def _passes(self, own):
        own = {tag.lower() for tag in own}
        wanted, unwanted = (
            {tag.lower() for tag in tags} for tags in (self.desired, self.undesired))
        return (not wanted or bool(own & wanted)) and not own & unwanted

    def expected(self):
        return {'frames received': self.received, 'frames published': self.published,
                'frames skipped': self.skipped, 'frames dropped': self.dropped,
                'frames repeated': self.repeated, 'simulator restarts': self.restarts,
                'samples missed': self.missed, 'actors dropped': self.dropped_actors,
                'duplicate names': self.duplicates, 'reconnects': self.reconnects,
                'protocol errors': self.protocol_errors, 'cut packets': self.cut_packets,
                'actors': self.n_with_tags,
                'actors without topics': max(self.n_with_tags - LIMIT, 0), 'internal errors': 0}


@dataclass
class Driver:
    """Does one random step after the other; each is made of its number alone."""

    listener: object
    simulator: object
    node: NodeProcess
    diagnostics: list
    model: Model = field(default_factory=Model)
    done: list = field(default_factory=list)
    _clock: float = 1.0
    _count: int = 0
    _n_new: int = 0
    _last_values: dict = field(default_factory=dict)

    def __post_init__(self):
        self.managed, self.remote = Managed(self.listener), Remote(self.listener)
        self.kinds = [
            (self.frames, 10), (self.array, 8), (self.repeat, 3), (self.restart, 2),
            (self.fault, 2), (self.transitions, 2), (self.change_parameter, 4)]

    def step(self, number):
        """Do the step, and check everything behind it."""
        chance = self.chance = random.Random(f'{SEED}.{number}')
        kinds, weights = zip(*self.kinds, strict=True)
        [do] = chance.choices(kinds, weights)
        self.done.append((number, do.__name__))
        do()
        self.check()

    # What is sent.

    def actors(self):
        """Choose actors: pairs of name and tags."""
        chance = self.chance
        names = chance.sample(NAMES, chance.randrange(0, 12))
        for _ in range(chance.choice((0, 0, 0, 1, 9))):
            self._n_new += 1
            names.append(f'new {self._n_new}')
        return [(name, tuple(chance.sample(TAGS, chance.randrange(0, 3)))) for name in names]

    def good(self, *, advance=True):
        """Make a frame of any generation that counts as published, and update the model."""
        chance = self.chance
        actors = self.actors()
        if advance:
            gap = chance.choice((0, 0, 0, 0, 1, 3))
            self._count += 1 + gap
            # Sometimes so late that actors are removed.
            self._clock += chance.choice((0.05, 0.05, 0.05, ACTOR_TIMEOUT_S + 1.0))
        head = {'game_time': self._clock, 'time': 1600000000}
        sample_count = self._count if chance.random() < 0.9 else 0
        if sample_count:
            head['sample_count'] = sample_count
        generation = chance.choice(('v2', 'v2', 'v1', 'v0'))
        dropped_actors = duplicates = 0
        states = [state(name, tags=tags, position=(chance.uniform(-1e5, 1e5), 0.0, 0.0),
                        velocity=(chance.choice((0.0, 100.0, None, float('nan'))), 0.0, 0.0),
                        n_boxes=chance.randrange(0, 3)) for name, tags in actors]
        if generation == 'v2':
            if states and chance.random() < 0.15:
                states.append(dict(states[0]))
                duplicates = 1
            if chance.random() < 0.15:
                states.append({**state('bad'), 'odometry': 7})
                dropped_actors = 1
            n_objects = chance.randrange(0, 1 + len(states))
            content = {'frame': {'objects': states[:n_objects], 'vehicles': [
                {'state': own, 'wheels': []} for own in states[n_objects:]]}, **head}
        else:
            flat = [{'name': own['name'], 'tags': own['tags'], 'orientation': [0, 0, 0, 1],
                     'position': [1.0, 2.0, 3.0], 'velocity': [0.0, 0.0, 0.0]} for own in states]
            if generation == 'v0' and flat:
                content = {**{own.pop('name'): own for own in flat}, **head}
            else:
                content = {'frame': flat, **head}
        self.model.good(self._clock, sample_count, [tags for _, tags in actors], dropped_actors,
                        duplicates)
        return json.dumps(content).encode()

    def bad(self):
        """Make a payload that is not a frame, and update the model."""
        self.model.bad()
        self._count += self.chance.choice((0, 1))
        return self.chance.choice((
            *BAD_OBJECTS, b'3', b'null', b'{"frame": nope}', b'[[]]',
            b'{"frame": [], "x": "\xff"}', b'""'))

    def bad_object(self):
        """Do the same with an object of JSON: any other costs the frames beside it, too."""
        self.bad()
        return self.chance.choice(BAD_OBJECTS)

    def send(self, data):
        self.simulator.send(data)

    def frames(self):
        for _ in range(self.chance.randrange(1, 6)):
            make = self.good if self.chance.random() < 0.85 else self.bad
            self.send(packet(make(), game_time=self._clock))

    def array(self):
        makers = [self.good if self.chance.random() < 0.8 else self.bad_object
                  for _ in range(self.chance.choice((2, 3, 7, 30)))]
        elements = [make() for make in makers]
        self.send(arrayed(*elements, game_time=float('nan')))

    def repeat(self):
        self.send(packet(self.good()))
        for _ in range(self.chance.randrange(1, 4)):
            self._count += self.chance.choice((0, 1))
            self.send(packet(self.good(advance=False)))

    def restart(self):
        self._clock = self.chance.uniform(0.0, self._clock / 2)
        self._count = self.chance.randrange(0, 2)
        self.frames()

    # What happens to the connection and to the node.

    def fault(self):
        chance, simulator = self.chance, self.simulator
        kind = chance.choice(('close', 'reset', 'cut', 'cut array', 'length', 'garbage', 'twice'))
        self.done[-1] += (kind,)
        if kind == 'twice':
            simulator.hang_up()
            simulator.accept()
            self.model.reconnects += 1
        if kind == 'reset':
            simulator.reset()
        elif kind == 'cut':
            data = packet({'frame': []})
            simulator.send(data[:chance.randrange(1, len(data))])
            self.model.cut_packets += 1
        elif kind == 'cut array':
            simulator.send(arrayed(*[{'frame': []}] * 9)[:-chance.randrange(1, 60)])
            self.model.cut_packets += 1
        elif kind in ('length', 'garbage'):
            length = chance.choice((0, 11, (1 << 20) + 1, 0xFFFFFFFF))
            simulator.send(struct.pack('>I', length) + chance.randbytes(
                12 if kind == 'length' else 300))
            self.model.protocol_errors += 1
            with suppress(ConnectionResetError):
                while simulator.connection.recv(1 << 16):
                    pass
        simulator.hang_up()
        simulator.accept()
        self.model.reconnects += 1
        if chance.random() < 0.7:
            self.frames()

    def transitions(self):
        chance = self.chance
        is_clean = chance.random() < 0.4
        self.done[-1] += ('cleanup' * is_clean,)
        assert self.managed.request('deactivate')
        if chance.random() < 0.3:
            self.change_parameter()
        if is_clean:
            assert self.managed.request('cleanup')
            assert self.managed.request('configure')
            self.model.restart()
        assert self.managed.request('activate')
        self.simulator.hang_up()
        self.simulator.accept()
        self.model.resume()
        if is_clean:
            # Without a frame the report has no actors.
            self.frames()

    def change_parameter(self):
        chance = self.chance
        name, value = chance.choice([
            ('debug_drawing', chance.random() < 0.7), ('odometry', chance.random() < 0.7),
            ('include_obb', chance.random() < 0.7), ('frame', chance.random() < 0.7),
            ('labels', chance.random() < 0.5), ('joint_states', chance.random() < 0.5),
            ('wheel_tf', chance.random() < 0.5), ('tf', chance.choice(('all', 'ego', 'none'))),
            ('desired_tags', chance.choice(([''], ['car'], ['VEHICLE', 'ego']))),
            ('undesired_tags', chance.choice(([''], ['parked'], ['car', 'ego'])))])
        self.done[-1] += (name, value)
        if name == 'desired_tags' and value == ['']:
            value = ['', 'vehicle', 'car', 'parked', 'ego']
        assert self.remote.set(name, value).successful
        if name == 'desired_tags':
            self.model.desired = tuple(tag for tag in value if tag)
        elif name == 'undesired_tags':
            self.model.undesired = tuple(tag for tag in value if tag)

    # What has to hold.

    def until(self, condition, what):
        try:
            return self.listener.until(condition, what=what)
        except AssertionError as error:
            raise AssertionError(self.failure(str(error))) from None

    def failure(self, why):
        """Describe a failure, so that it can be repeated."""
        return (f'{why}; seed {SEED}, steps {self.done}; found and expected: '
                f'{self.differences(self._last_values)}\n{self.node.log[-3000:]}')

    def differences(self, values):
        """Return what a report has and should have, where that differs."""
        return {key: (values.get(key), value) for key, value in self.model.expected().items()
                if values.get(key) != str(value)}

    def require(self, holds, why):
        assert holds, self.failure(why)

    def check(self):
        """Wait until nothing is in flight; then compare what was counted."""
        def is_as_expected():
            # The last one alone: checking thousands takes longer than the period of reports.
            reports = statuses(self.diagnostics[-1:])
            if not reports:
                return False
            values = self._last_values = reports[-1]
            return values.get('connection state') == 'connected' \
                and not self.differences(values)

        self.until(is_as_expected, 'a report as expected')
        graph = self.listener.node
        topics = [name for name, _ in graph.get_topic_names_and_types()
                  if name.startswith('/state_sensor/actors/') and graph.count_publishers(name)]
        self.require(len(topics) <= LIMIT * N_KINDS, f'{len(topics)} topics of actors')
        self.require(self.node.is_alive, 'the node has ended')
        self.require('Traceback' not in self.node.log, 'a traceback')


def test_any_sequence_is_counted_and_survived(domain, listener, simulator, tmp_path):
    path = tmp_path / 'node.py'
    path.write_text(PROGRAM)
    with NodeProcess(domain, program=str(path), port=simulator.port,
                     **PARAMETERS) as node:
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray',
                                         depth=10_000)
        simulator.accept()
        driver = Driver(listener, simulator, node, diagnostics)
        listener.until(lambda: diagnostics, what='a report')
        driver.send(packet(driver_first(driver)))
        driver.check()
        until_s = time.monotonic() + BUDGET_S
        for number in itertools.count(1):
            driver.step(number)
            if time.monotonic() > until_s and number >= MIN_STEPS:
                break
            # Only the last ones are of interest.
            del driver.done[:-400]
        code, seconds = node.end()
        assert code == 0, node.log
        assert seconds < END_S
        assert 'Traceback' not in node.log


def driver_first(driver):
    """Make the first frame: without one, the report has no game time."""
    driver.chance = random.Random(SEED)
    return driver.good()
