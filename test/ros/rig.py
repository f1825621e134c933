# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""A scripted simulator, the node as a process, and a listener: the rig of the ROS tests."""

from contextlib import contextmanager
from importlib import import_module
import json
import os
from pathlib import Path
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile

AWAIT_S = 20.0
END_S = 2.0  # INTERFACE 3.6: every program ends within 2 s of a signal


def packet(payload, *, game_time=0.0, sample_count=0, time_s=1600000000, header_bytes=16):
    """Frame ``payload`` (bytes, or anything JSON can say) as the sensor port does."""
    if not isinstance(payload, bytes):
        payload = json.dumps(payload).encode()
    header = struct.pack('>IIf', len(payload) + header_bytes, time_s, game_time)
    if header_bytes == 16:
        header += struct.pack('>I', sample_count)
    return header + payload


def vector(x=0.0, y=0.0, z=0.0):
    return {'x': x, 'y': y, 'z': z}


def state(name, *, position=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.0), tags=('vehicle',),
          orientation=(0.0, 0.0, 0.0, 1.0), n_boxes=1):
    """Make an actor's state in the units of the simulator; ``orientation`` x y z w."""
    x, y, z, w = orientation
    box = {'center': vector(*position), 'extents': vector(180.0, 140.0, 450.0), 'name': 'Body',
           'orientation': {'w': 0.5, 'x': 0.5, 'y': -0.5, 'z': -0.5},
           'scale': vector(1.0, 1.0, 1.0)}
    return {'name': name, 'tags': list(tags), 'oriented_bounding_box': [box] * n_boxes,
            'odometry': {'pose': {'position': vector(*position),
                                  'orientation': {'w': w, 'x': x, 'y': y, 'z': z}},
                         'linear_velocity': vector(*velocity), 'angular_velocity': vector()}}


def frame(number, *states, objects=(), period=0.05, start=1.0):
    """Make frame ``number`` of a v2 stream; one ego that drives along x where none is given."""
    game_time = start + number * period
    states = states or (state('ego_car', position=(1000.0 * number * period, -200.0, 3.0),
                              velocity=(1000.0, 0.0, 0.0), tags=('vehicle', 'ego')),)
    lane = {'lane_change_left': False, 'lane_change_right': True, 'lane_id': 2, 'road_id': 7,
            's': 1250.0, 'section_id': 0}
    return {'frame': {'objects': list(objects),
                      'vehicles': [{'state': each, 'wheels': [], 'control_state': lane}
                                   for each in states]},
            'game_time': game_time, 'sample_count': number + 1, 'time': 1600000000}


def framed(number, *states, **options):
    """Make the packet of :func:`frame`."""
    content = frame(number, *states, **options)
    return packet(content, game_time=content['game_time'], sample_count=number + 1)


class ScriptedSimulator:
    """A listening socket that does what the test says, step by step."""

    def __init__(self, port=0):
        self._server = socket.create_server(('127.0.0.1', port), reuse_port=False)
        self._server.settimeout(AWAIT_S)
        self.port = self._server.getsockname()[1]
        self.connection = None

    def accept(self):
        """Wait for the node to connect."""
        self.connection, _ = self._server.accept()
        self.connection.settimeout(AWAIT_S)
        return self.connection

    def send(self, *packets):
        self.connection.sendall(b''.join(packets))

    def hang_up(self):
        self.connection.close()

    def reset(self):
        """Close with a reset in place of an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.connection.close()

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self._server.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class NodeProcess:
    """``state_sensor_node`` as users start it."""

    def __init__(self, domain, *, arguments=(), prefix=(), environment=None, **parameters):
        given = [part for name, value in parameters.items()
                 for part in ('-p', f'{name}:={_as_yaml(value)}')]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*prefix, shutil.which('state_sensor_node'), '--ros-args', *given, *arguments],
            stdout=self._log, stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {}), 'ROS_DOMAIN_ID': str(domain),
                 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'})

    @property
    def log(self):
        """All that the node has printed so far."""
        self._log.seek(0)
        return self._log.read().decode()

    @property
    def is_alive(self):
        return self.process.poll() is None

    def memory_mb(self):
        """Return the resident memory."""
        pages = int(Path(f'/proc/{self.process.pid}/statm').read_text().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE') / 2 ** 20

    def end(self, signum=signal.SIGINT):
        """End it by a signal; return its exit code and how long that took."""
        began = time.monotonic()
        self.process.send_signal(signum)
        code = self.process.wait(AWAIT_S)
        return code, time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.is_alive:
            self.process.terminate()
            try:
                self.process.wait(END_S * 2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()


def _as_yaml(value):
    return json.dumps(value)


class Listener:
    """A ROS node in the test's own process that keeps what it hears."""

    def __init__(self, domain, name='listener'):
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = rclpy.create_node(name, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def hear(self, topic, type_name, *, depth=1000, latched=False):
        """Subscribe; returns the list that messages are added to."""
        package, name = type_name.split('/')
        heard = []
        qos = QoSProfile(depth=depth)
        if latched:
            qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
        self.node.create_subscription(getattr(import_module(f'{package}.msg'), name), topic,
                                      heard.append, qos)
        return heard

    def spin(self, seconds=0.05):
        self._executor.spin_once(timeout_sec=seconds)

    def until(self, condition, seconds=AWAIT_S, what='what the test waits for'):
        """Spin until ``condition()`` is true; return its value."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f'{what} did not come within {seconds} s'
            self.spin()
        return found

    def matched(self, topic, n=1):
        """Wait until ``topic`` has ``n`` publishers that this node has found."""
        self.until(lambda: self.node.count_publishers(topic) >= n, what=f'a publisher of {topic}')

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)


def statuses(heard, part='stream'):
    """Return the values of each report heard of the status ``part``."""
    return [{pair.key: pair.value for pair in status.values} | {
        'level': status.level[0], 'message': status.message}
        for array in heard for status in array.status if status.name.endswith(f': {part}')]


@contextmanager
def listening(domain, name='listener'):
    """Provide a listener and close it."""
    listener = Listener(domain, name)
    try:
        yield listener
    finally:
        listener.close()
