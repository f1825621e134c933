# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
A simulated clock, and threads that run one at a time on it, for modules that import `threading`.

:class:`Machine` has stand-ins for the modules ``threading``, ``time`` and ``queue``: a thread that
waits lets the clock advance to the next event. Equal schedules give equal runs.
"""

from contextlib import contextmanager
import errno
from functools import partial
import heapq
from itertools import count
from queue import Empty, Full
import socket
from types import SimpleNamespace

from greenlet import getcurrent, greenlet

ETERNITY_S = 1e9
MSG_PEEK, MSG_DONTWAIT = int(socket.MSG_PEEK), int(socket.MSG_DONTWAIT)
# Events in one advance of the clock; more are a loop without a wait.
_MOST_EVENTS = 20_000


class Ended(BaseException):
    """The run is over; raised in each thread that still waits."""


class Thread:
    """A simulated thread, which runs while the machine has handed over to it."""

    machine = None  # of a subclass

    def __init__(self, group=None, target=None, name='', args=(), kwargs=None, daemon=True):
        self._call, self.name, self.daemon = lambda: target(*args, **(kwargs or {})), name, daemon
        self.greenlet, self.is_over = greenlet(self._run, self.machine.greenlet), False
        # Whether it waits, in which of its waits, and whether its end is an event already.
        self.is_waiting, self.n_waits, self.is_due = False, 0, False
        self.process = self.machine.process

    def start(self):
        self.machine.threads.append(self)
        self.machine.at(0.0, lambda: self.machine.hand_over(self), self.process)

    def _run(self):
        try:
            if not self.machine.is_over:
                self._call()
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001
            self.machine.failures.append(error)
        self.is_over = True
        self.machine.threads.remove(self)

    def join(self, timeout=None):
        self.machine.wait(timeout, lambda: self.is_over)

    def is_alive(self):
        return not self.is_over


class Machine:
    """
    The clock, its events and its threads.

    :ivar failures: exceptions that ended a thread or an event.
    """

    def __init__(self):
        self.now_s, self.wall_offset_s = 1000.0, 1.7e9
        self.threads, self.failures, self.is_over = [], [], False
        self.process, self.stopped, self._held = 'node', set(), []
        # In which the clock advances.
        self.current, self.greenlet = None, getcurrent()
        self._events, self._numbers = [], count()
        machine = self
        self.Thread = type('SimulatedThread', (Thread,), {'machine': machine})
        self.threading = SimpleNamespace(
            Thread=self.Thread, Lock=lambda: Lock(self), Condition=lambda lock=None: Condition(
                self, lock), Event=lambda: Event(self), current_thread=lambda: self.current,
            TIMEOUT_MAX=ETERNITY_S)
        self.time = SimpleNamespace(
            monotonic=lambda: self.now_s, time=lambda: self.now_s + self.wall_offset_s,
            perf_counter_ns=lambda: round(self.now_s * 1e9), perf_counter=lambda: self.now_s,
            sleep=lambda s: self.wait(s, lambda: False))
        self.Queue = lambda size=0: SimulatedQueue(self, size)

    def at(self, seconds, call, process=None):
        """Have a function called after some seconds; a stopped process calls it later."""
        heapq.heappush(self._events, (self.now_s + seconds if seconds > 0.0 else self.now_s,
                                      next(self._numbers), call, process or self.process))

    def hand_over(self, thread):
        """Let a thread run until it waits."""
        before, self.current = self.current, thread
        process, self.process = self.process, thread.process
        thread.greenlet.switch()
        self.current, self.process = before, process

    def _resume(self, thread, n_waits):
        if thread.n_waits == n_waits and thread.is_waiting:
            thread.is_due = False
            if thread.is_ready() or self.now_s >= thread.until_s:
                self.hand_over(thread)

    def wait(self, timeout, is_ready):
        """Wait in a thread until the result of a call is true; return the result."""
        thread = self.current
        if is_ready():
            return True
        if thread is None:
            raise RuntimeError('an event would wait')
        thread.until_s = self.now_s + (ETERNITY_S if timeout is None else max(timeout, 0.0))
        thread.n_waits += 1
        thread.is_ready, thread.is_waiting, thread.is_due = is_ready, True, False
        if timeout is not None:
            self.at(timeout, partial(self._resume, thread, thread.n_waits), thread.process)
        self.greenlet.switch()
        thread.is_waiting = False
        if self.is_over:
            raise Ended
        return is_ready()

    def changed(self):
        """Resume the threads whose wait may be over."""
        for thread in self.threads:
            if thread.is_waiting and not thread.is_due and thread.is_ready():
                thread.is_due = True
                self.at(0.0, partial(self._resume, thread, thread.n_waits), thread.process)

    def run(self, seconds):
        """Advance the clock."""
        until_s, n_events = self.now_s + seconds, 0
        events, before = self._events, self.process
        while events and events[0][0] <= until_s:
            n_events += 1
            assert n_events < _MOST_EVENTS, 'a thread never waits'
            self.now_s, _, call, process = heapq.heappop(events)
            if process in self.stopped:
                self._held.append((process, call))
                continue
            self.process = process
            try:
                call()
            except Exception as error:  # noqa: BLE001
                self.failures.append(error)
        self.now_s, self.process = until_s, before

    def stop(self, process):
        """Stop a process, as SIGSTOP does."""
        self.stopped.add(process)

    def go_on(self, process):
        """Continue a stopped process."""
        self.stopped.discard(process)
        held, self._held = self._held, []
        for each, call in held:
            self.at(0.0, call, each)

    def close(self):
        """End all threads."""
        self.is_over = True
        for thread in tuple(self.threads):
            self.hand_over(thread)


class Lock:

    def __init__(self, machine):
        self._machine, self._owner, self._n_waiting = machine, None, 0

    def acquire(self, blocking=True, timeout=-1):
        if self._owner is not None:
            self._n_waiting += 1
            is_free = blocking and timeout != 0 and self._machine.wait(
                None if timeout < 0 else timeout, lambda: self._owner is None)
            self._n_waiting -= 1
            if not is_free:
                return False
        self._owner = self._machine.current or 'event'
        return True

    def release(self):
        self._owner = None
        if self._n_waiting:
            self._machine.changed()

    def locked(self):
        return self._owner is not None

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *_):
        self.release()


class Condition:
    """A condition on a lock that its thread may take again."""

    def __init__(self, machine, lock=None):
        self._machine, self._owner, self._depth, self._n_notified = machine, None, 0, 0
        # Threads that wait for the lock or a notification.
        self._n_waiting = 0

    def __enter__(self):
        me = self._machine.current or 'event'
        if self._owner not in (None, me):
            self._wait(None, lambda: self._owner is None)
        self._owner = me
        self._depth += 1
        return self

    def __exit__(self, *_):
        self._depth -= 1
        if not self._depth:
            self._owner = None
            if self._n_waiting:
                self._machine.changed()

    def wait(self, timeout=None):
        return self.wait_for(None, timeout)

    def wait_for(self, predicate, timeout=None):
        me, depth, seen = self._owner, self._depth, self._n_notified
        if predicate is not None and predicate():
            return True
        ready = predicate or (lambda: self._n_notified > seen)
        self._owner, self._depth = None, 0
        if self._n_waiting:
            self._machine.changed()
        self._wait(timeout, lambda: self._owner is None and ready())
        result = ready()
        if self._owner is not None:
            self._wait(None, lambda: self._owner is None)
        self._owner, self._depth = me, depth
        return result

    def _wait(self, timeout, is_ready):
        self._n_waiting += 1
        self._machine.wait(timeout, is_ready)
        self._n_waiting -= 1

    def notify_all(self):
        self._n_notified += 1
        # With the lock held, none can go on before it is released.

    notify = notify_all


class Event:

    def __init__(self, machine):
        self._machine, self._is_set = machine, False

    def set(self):
        self._is_set = True
        self._machine.changed()

    def clear(self):
        self._is_set = False

    def is_set(self):
        return self._is_set

    def wait(self, timeout=None):
        return self._machine.wait(timeout, lambda: self._is_set)


class SimulatedQueue:

    def __init__(self, machine, size=0):
        self._machine, self._items, self._size = machine, [], size

    def put_nowait(self, item):
        if self._size and len(self._items) >= self._size:
            raise Full
        self._items.append(item)
        self._machine.changed()

    put = put_nowait

    def get_nowait(self):
        if not self._items:
            raise Empty
        return self._items.pop(0)

    def get(self, timeout=None):
        self._machine.wait(timeout, lambda: bool(self._items))
        return self.get_nowait()

    def qsize(self):
        return len(self._items)


class Endpoint:
    """
    One end of a stream of bytes to a simulator.

    ``room`` bytes that its peer's buffer still takes; ``on_bytes`` called by the peer.
    """

    def __init__(self, network, on_bytes):
        self.network, self.on_bytes = network, on_bytes
        self.unread, self.incoming = bytearray(), bytearray()
        self.is_open = True

    def reply(self, data):
        if self.is_open:
            self.incoming += data
            self.network.machine.changed()

    def write(self, data):
        """Take bytes as the kernel does: as many as there is room."""
        if not self.is_open:
            raise BrokenPipeError(errno.EPIPE, 'Broken pipe')
        taken = bytes(data)[:self.network.room(self) - len(self.unread)]
        self.unread += taken
        self.read()
        return len(taken)

    def read(self):
        if self.network.reads(self) and self.unread:
            data, self.unread = bytes(self.unread), bytearray()
            self.on_bytes(self, data)

    def close(self):
        self.is_open = False
        self.network.machine.changed()


class Network:
    """
    The ports of simulators: ``listeners`` by port make the receiver of a new connection's bytes.

    ``is_blocked``: the simulators read nothing; ``has_descriptors``: new sockets can be made.
    """

    ROOM = 400

    def __init__(self, machine):
        self.machine, self.listeners, self.ends = machine, {}, []
        self.blocked, self.has_descriptors = set(), True
        self._files = {}

    def room(self, end):
        return self.ROOM if not self.reads(end) else 1 << 30

    def reads(self, end):
        return end.port not in self.blocked

    def set_blocked(self, port, is_blocked):
        (self.blocked.add if is_blocked else self.blocked.discard)(port)
        for end in self.ends:
            end.read()

    def connect(self, port):
        listener = self.listeners.get(port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, 'Connection refused')
        end = Endpoint(self, listener)
        end.port = port
        self.ends.append(end)
        return end

    def cut(self, port):
        for end in self.ends:
            if end.port == port:
                end.close()

    def take_descriptor(self):
        if not self.has_descriptors:
            raise OSError(errno.EMFILE, 'Too many open files')

    def new_socket(self, *_):
        self.take_descriptor()
        return Socket(self)

    def write(self, number, data):
        """As ``os.write``."""
        taken = self._files[number].end.write(data)
        if not taken:
            raise BlockingIOError(errno.EAGAIN, 'busy')
        return taken

    def module(self):
        """Return a stand-in for the module ``socket``."""
        return SimpleNamespace(**{**vars(socket), 'socket': self.new_socket})


class Socket:

    def __init__(self, network, end=None):
        self._network, self.end, self._timeout = network, end, None
        self._number = id(self)
        network._files[self._number] = self

    def fileno(self):
        return self._number

    def settimeout(self, seconds):
        self._timeout = seconds

    def setblocking(self, flag):
        self._timeout = None if flag else 0.0

    def connect(self, address):
        self.end = self._network.connect(address[1])

    def getsockname(self):
        return ('127.0.0.1', 1)

    def setsockopt(self, *_):
        pass

    def dup(self):
        self._network.take_descriptor()
        copy = Socket(self._network, self.end)
        copy._timeout = self._timeout
        return copy

    def recv(self, n, flags=0):
        end = self._network and self.end
        if not end.incoming and end.is_open:
            if self._timeout == 0.0 or flags & MSG_DONTWAIT:
                raise BlockingIOError(errno.EAGAIN, 'busy')
            if not self._network.machine.wait(
                    self._timeout, lambda: end.incoming or not end.is_open):
                raise TimeoutError('timed out')
        data = bytes(end.incoming[:n])
        if not flags & MSG_PEEK:
            del end.incoming[:n]
        return data

    def send(self, data, flags=0):
        taken = self.end.write(data)
        if taken:
            return taken
        # As the interpreter: a time-out waits in spite of MSG_DONTWAIT.
        if self._timeout == 0.0 or not self._network.machine.wait(
                self._timeout, lambda: self._network.reads(self.end) or not self.end.is_open):
            raise (BlockingIOError(errno.EAGAIN, 'busy') if self._timeout == 0.0
                   else TimeoutError('timed out'))
        return self.end.write(data)

    def sendall(self, data):
        rest = bytes(data)
        while rest:
            rest = rest[self.send(rest):]

    def shutdown(self, _):
        self.end.close()

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Pipe:
    """A pipe of messages to a process, with the room of ``limit`` of them while it is stopped."""

    def __init__(self, machine, limit=50):
        self._machine, self.items, self._limit, self.is_open = machine, [], limit, True

    def send_bytes(self, data):
        if not self.is_open:
            raise BrokenPipeError(errno.EPIPE, 'Broken pipe')
        if len(self.items) >= self._limit:
            raise BlockingIOError(errno.EAGAIN, 'busy')
        self.items.append(bytes(data))
        self._machine.changed()

    def poll(self, timeout=0.0):
        return bool(self._machine.wait(timeout, lambda: self.items or not self.is_open))

    def recv_bytes(self):
        self._machine.wait(None, lambda: self.items or not self.is_open)
        if not self.items:
            raise EOFError
        return self.items.pop(0)

    def unread_bytes(self):
        return sum(4 + len(each) for each in self.items)

    def close(self):
        self.is_open = False
        self._machine.changed()

    def fileno(self):
        return self


@contextmanager
def replaced(changes):
    """Replace attributes of modules for a while: (module, name, value) each."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
