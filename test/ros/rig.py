# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""A scripted simulator, the node as a process, and a listener: the rig of the ROS tests."""

from contextlib import closing, suppress
from functools import partial
from importlib import import_module
from itertools import islice, pairwise
import json
import os
from pathlib import Path
from select import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from budgets import AWAIT_S
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from ports import free_port
from programs import start_node
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from stopwatch import Stopwatch

END_S = 2.0  # Every program ends within 2 s of a signal.
RECONNECT_MAX_S = 0.5
# The node publishes again within reconnect_max + 1 s; the rest is for a slow machine.
AGAIN_S = RECONNECT_MAX_S + 1.0 + 1.5
# Messages of a topic that are taken in without a look at other topics.
_MAX_TAKEN = 100
_TOGETHER_S = 0.003
FAST = {'reconnect_min': 0.05, 'reconnect_max': RECONNECT_MAX_S, 'stale_after': 1.0}
TRANSITIONS = {
    'configure': Transition.TRANSITION_CONFIGURE, 'activate': Transition.TRANSITION_ACTIVATE,
    'deactivate': Transition.TRANSITION_DEACTIVATE, 'cleanup': Transition.TRANSITION_CLEANUP,
    'shutdown': Transition.TRANSITION_UNCONFIGURED_SHUTDOWN}


def packet(payload, *, game_time=0.0, sample_count=0, time_s=1600000000, header_bytes=16):
    """Frame ``payload`` (bytes, or any value of JSON) as the sensor port does."""
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


def arrayed(*elements, **header):
    """Make a packet whose payload is an array of ``elements``: text, or any value of JSON."""
    texts = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in elements]
    return packet(b'[' + b','.join(texts) + b']', **header)


class ScriptedSimulator:
    """A listening socket that the test controls step by step."""

    def __init__(self, port=0):
        self._server = socket.create_server(('127.0.0.1', port or free_port()))
        self._server.settimeout(0.0)
        self.port = self._server.getsockname()[1]
        self.connection = None

    def accept(self, seconds=AWAIT_S):
        """Wait for the node to connect."""
        deadline = time.monotonic() + seconds
        while not select([self._server], [], [], 0.1)[0] and time.monotonic() < deadline:
            assert not (logs := failed_logs()), logs
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
        # First the server: a node that finds its connection closed would connect again.
        self._server.close()
        if self.connection is not None:
            self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# The nodes of the test that runs.
_nodes = []


class NodeProcess:
    """
    ``state_sensor_node`` as users start it.

    :param program: the Python script in place of ``state_sensor_node``.
    :param prefix: the command that it is an argument of.
    :param environment: variables to add.
    :param is_new: whether to start a new process, not a fork, as for a prefix or variables.
    :param output: descriptor of its output, in place of a file that :attr:`log` reads.
    """

    def __init__(self, domain, *, arguments=(), program=None, prefix=(), environment=None,
                 is_new=False, output=None, **parameters):
        given = [part for name, value in parameters.items()
                 for part in ('-p', f'{name}:={json.dumps(value)}')]
        words = [program or shutil.which('state_sensor_node'), '--ros-args', *given, *arguments]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        options = {'stdout': self._log if output is None else output,
                   'stderr': subprocess.STDOUT, 'env': {
            **os.environ, **(environment or {}), 'ROS_DOMAIN_ID': str(domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}}
        if is_new or prefix or environment:
            self.process = subprocess.Popen([*prefix, *words], **options)
        else:
            self.process = start_node(words, **options)
        # Measures its end by a signal.
        self.ending = None
        _nodes.append(self)

    @property
    def log(self):
        """All that the node has printed so far."""
        # Without a move of the position, which the node's output shares.
        file = self._log.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode()

    @property
    def is_alive(self):
        return self.process.poll() is None

    def memory_mb(self):
        """Return the resident memory."""
        pages = int(Path(f'/proc/{self.process.pid}/statm').read_text().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE') / 2 ** 20

    def end(self, signum=signal.SIGINT):
        """End it by a signal; return its exit code and how long that took, seconds."""
        self.ending = Stopwatch(self.process)
        self.process.send_signal(signum)
        return self.ending.wait(), self.ending.seconds

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
        _nodes.remove(self)
        self._log.close()


def failed_logs():
    """Return what the nodes have printed that have ended with an error."""
    return [node.log for node in _nodes if (node.process.poll() or 0) > 0]


# The node with functions that are replaced.
PROGRAM = """
from importlib import import_module
import sys
import time

from state_sensor_ros.ros.main import main


def fail():
    raise RuntimeError('provoked')


def replace(module, owner, function, replacement):
    class_ = getattr(import_module('state_sensor_ros.' + module), owner)
    original = getattr(class_, function)
    setattr(class_, function,
            lambda self, *args, **options: replacement(original, self, *args, **options))


"""


def changed_program(path, *replacements):
    """
    Write a program that starts the node with functions replaced.

    :param replacements: module, class, function and the body of the replacement, which may use
        ``original``, ``self``, ``args``, ``options``, ``time`` and ``fail()``.
    :returns: its path, for :class:`NodeProcess`.
    """
    path.write_text(PROGRAM + '\n\n'.join(
        f'def replacement_{i}(original, self, *args, **options):\n{body.strip(chr(10))}\n\n\n'
        f'replace({module!r}, {owner!r}, {function!r}, replacement_{i})\n'
        for i, (module, owner, function, body) in enumerate(replacements))
        + '\n\nsys.exit(main())\n')
    return str(path)


class Listener:
    """
    A ROS node in the test's own process that keeps the messages received.

    It waits as ``rclpy.wait_for_message`` does: an executor takes 1 ms of processor time for each
    message, most of it to make a new wait set.
    """

    def __init__(self, domain, name='listener'):
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = rclpy.create_node(name, context=self._context, start_parameter_services=False)

    def subscribe(self, topic, type_name, *, depth=1000, latched=False):
        """Subscribe; returns the list that messages are added to."""
        package, name = type_name.split('/')
        received = []
        qos = QoSProfile(depth=depth)
        if latched:
            qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
        self.node.create_subscription(getattr(import_module(f'{package}.msg'), name), topic,
                                      received.append, qos)
        return received

    def spin(self, seconds=0.05):
        """Wait for a message or an answer, and take in what has arrived."""
        subscriptions, clients = tuple(self.node.subscriptions), tuple(self.node.clients)
        if not (subscriptions or clients):
            time.sleep(seconds)
            return
        waiting = rclpy_implementation.WaitSet(
            len(subscriptions), 0, 0, len(clients), 0, 0, self._context.handle)
        waiting.clear_entities()
        for each in subscriptions:
            waiting.add_subscription(each.handle)
        for each in clients:
            waiting.add_client(each.handle)
        waiting.wait(round(max(seconds, 0.0) * 1e9))
        if ready := waiting.get_ready_entities('subscription'):
            # What a node publishes of one frame on several topics is taken in at once.
            time.sleep(_TOGETHER_S)
        for each in subscriptions:
            if each.handle.pointer in ready:
                self._take_messages(each)
        ready = waiting.get_ready_entities('client')
        for each in clients:
            if each.handle.pointer in ready:
                self._take_answer(each)

    def _take_messages(self, subscription):
        take = partial(subscription.handle.take_message, subscription.msg_type, subscription.raw)
        for message, _ in islice(iter(take, None), _MAX_TAKEN):
            subscription.callback(message)

    def _take_answer(self, client):
        header, answer = client.handle.take_response(client.srv_type.Response)
        if header is not None:
            with suppress(KeyError):
                client.get_pending_request(header.request_id.sequence_number).set_result(answer)

    def spin_for(self, seconds):
        """Take in what comes within a time."""
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0.0:
            self.spin(left_s)

    def until(self, condition, seconds=AWAIT_S, what='what the test waits for'):
        """Spin until ``condition()`` is true; return its value."""
        deadline = time.monotonic() + seconds
        while True:
            # Before the condition, which may be one of what a node has printed at its end.
            logs = failed_logs()
            if found := condition():
                return found
            assert not logs, f'{what}: not before the end of a node: {logs}'
            assert time.monotonic() < deadline, f'{what}: not within {seconds} s'
            self.spin()

    def call(self, client, request):
        """Return the answer of a service."""
        future = client.call_async(request)
        self.until(future.done, what=f'an answer of {client.srv_name}')
        return future.result()

    def matched(self, topic, n=1):
        """Wait until ``topic`` has ``n`` publishers that this node has found."""
        self.until(lambda: self.node.count_publishers(topic) >= n, what=f'a publisher of {topic}')

    def until_served(self, *clients, probe):
        """
        Wait until services have found their clients: what they answer before is lost.

        :param clients: in the order of their creation, in which a service node finds them.
        :param probe: a request to the last one that changes nothing; it is repeated.
        """
        for client in clients:
            self.until(client.service_is_ready, what=f'the service {client.srv_name}')
        answers = []

        def is_answered():
            answers.append(clients[-1].call_async(probe))
            until_s = time.monotonic() + 1.0
            while time.monotonic() < until_s and not any(each.done() for each in answers):
                self.spin()
            return any(each.done() for each in answers)

        self.until(is_answered, what='an answer to each client')

    def receive_all(self, *topics):
        """Take in what has been sent, until for half a second nothing more is in the lists."""
        n_before = None
        while n_before != (n_now := [len(received) for received in topics]):
            n_before = n_now
            self.spin_for(0.5)

    def close(self):
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)


class Managed:
    """Requests transitions of a node."""

    def __init__(self, listener):
        self._listener = listener
        self._change = listener.node.create_client(ChangeState, '/state_sensor/change_state')
        self._state = listener.node.create_client(GetState, '/state_sensor/get_state')
        listener.until_served(self._change, self._state, probe=GetState.Request())

    def request(self, name):
        request = ChangeState.Request()
        request.transition.id = TRANSITIONS[name]
        return self._listener.call(self._change, request).success

    @property
    def state(self):
        return self._listener.call(self._state, GetState.Request()).current_state.label


class Remote:
    """Use the parameter services of a node."""

    def __init__(self, listener, node='/state_sensor'):
        self._listener = listener
        self._clients = {
            kind: listener.node.create_client(kind, f'{node}/{name}') for kind, name in (
                (SetParameters, 'set_parameters'), (GetParameters, 'get_parameters'),
                (DescribeParameters, 'describe_parameters'))}
        listener.until_served(*self._clients.values(), probe=DescribeParameters.Request())

    def call(self, kind, **fields):
        return self._listener.call(self._clients[kind], kind.Request(**fields))

    def set_each(self, pairs):
        """Set parameters one after the other; return the result of each."""
        return self.call(SetParameters, parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in pairs]).results

    def set(self, name, value):
        return self.set_each([(name, value)])[0]


def statuses(received, part='stream'):
    """Return the values of each report received of the status ``part``."""
    return [{pair.key: pair.value for pair in status.values} | {
        'level': status.level[0], 'message': status.message}
        for array in received for status in array.status if status.name.endswith(f': {part}')]


# The counters of the status `stream`; none of them ever decreases.
COUNTERS = ('frames received', 'frames published', 'frames skipped', 'frames dropped',
            'frames repeated', 'samples missed', 'bytes', 'reconnects', 'protocol errors',
            'cut packets', 'simulator restarts', 'internal errors', 'actors dropped',
            'duplicate names', 'unusable poses', 'unknown velocities')


class Bench:
    """
    A node under test, its simulator, and what is received from it.

    ``n_sent`` number of the next frame; ``n_frames`` frames sent, of which the node has to count
    each as received.
    """

    def __init__(self, domain, listener, simulator, **parameters):
        self.listener, self.simulator = listener, simulator
        self.node = NodeProcess(domain, **{'port': simulator.port, **FAST, **parameters})
        self.frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
        self.tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
        self.diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        self.n_sent = self.n_frames = 0

    def connect(self, warm=True):
        """Wait for the node to connect and for its topics to be received."""
        self.simulator.accept()
        if warm:
            self.listener.until(self.send_until_received, what='a first frame')

    def send_until_received(self):
        self.send()
        self.listener.spin(0.1)
        return self.frames

    def send(self, n=1):
        for _ in range(n):
            self.simulator.send(framed(self.n_sent))
            self.n_sent += 1
            self.n_frames += 1

    def content(self, *states, **more):
        """Return the next frame, with the given states, to be sent by :meth:`send_packet`."""
        self.n_sent += 1
        return {**frame(self.n_sent - 1, *states), **more}

    def send_packet(self, data, n_frames=1):
        """Send the packet of ``n_frames`` frames."""
        self.simulator.send(data)
        self.n_frames += n_frames

    def publishes_again(self, seconds=AGAIN_S):
        """Wait for a new frame; it comes within the time that the contract gives."""
        before, watch = len(self.frames), Stopwatch(self.node.process)
        self.send()
        self.listener.until(lambda: len(self.frames) > before, what='a frame after the fault')
        assert watch.seconds < seconds

    def counted(self, key, at_least=1, part='stream'):
        """Wait for a report that has counted the fault; return that report."""
        def found():
            return [values for values in statuses(self.diagnostics, part)
                    if float(values.get(key) or 0) >= at_least]
        return self.listener.until(found, what=f'{key} >= {at_least}')[0]

    def wait_until_counted(self, seconds=AWAIT_S):
        """Wait until all frames sent are counted and none is in flight; return that report."""
        def found():
            values = next(iter(statuses(self.diagnostics[-1:])), {})
            received, *others = (int(values.get(f'frames {what}', -1)) for what in (
                'received', 'published', 'skipped', 'dropped'))
            return values if received == self.n_frames == sum(others) else None
        try:
            return self.listener.until(found, seconds)
        except AssertionError:
            raise AssertionError(f'not all of {self.n_frames} frames sent are counted: '
                                 f'{statuses(self.diagnostics)[-1:]}\n{self.node.log}') from None

    def finish(self):
        assert self.node.is_alive
        code, seconds = self.node.end()
        log = self.node.log
        assert code == 0, log
        assert seconds < END_S
        assert 'Traceback' not in log


def check_counters_never_decrease(received):
    """Check all reports received, in their order."""
    reports = [values for values in statuses(received) if 'frames received' in values]
    for before, now in pairwise(reports):
        assert all(int(before[key]) <= int(now[key]) for key in COUNTERS), (before, now)
        assert float(now['frame rate'] or 0) >= 0.0


def listening(domain, name='listener'):
    """Provide a listener and close it."""
    return closing(Listener(domain, name))
