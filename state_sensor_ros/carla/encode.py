# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
CARLA's extension of a frame to the serialised bytes of the topics that only CARLA has.

May know: which families of messages there are and in which order they are sent. Must not know: how
a message is laid out, how CARLA sent what is in it, publishers.
"""

from __future__ import annotations

from collections.abc import Callable

from state_sensor_ros.carla.extension import CarlaExtension, CLASS_PLAYER
from state_sensor_ros.carla.pictures import Pictures
from state_sensor_ros.carla.player import player_numbers, PlayerMessages
from state_sensor_ros.carla.signs import sign_numbers, SignArrays, SignMarkers
from state_sensor_ros.carla.topics import LIGHTS_TOPIC, LIMITS_TOPIC
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.encode.message_block import MessageBlock, Messages
from state_sensor_ros.encode.numbers import Numbers, stamp_numbers
from state_sensor_ros.encode.tables import STAMP
from state_sensor_ros.encode.topics import Demand, enabled, Topic
from state_sensor_ros.encode.verification import Sample, sample_of
from state_sensor_ros.frame import Bools, Frame
from state_sensor_ros.naming import Cast
from state_sensor_ros.settings import Settings


def _ignore(kind: str, text: str) -> None:
    """Report to nobody."""


class CarlaEncoder:
    """
    Encode what the common encoder does not know; nothing for a frame of another simulator.

    :param settings: parameters; :meth:`reconfigure` replaces the dynamic ones.
    :param definitions: of the messages.
    :param report: called with a kind, for throttling, and a line about what went wrong.
    """

    def __init__(self, settings: Settings, definitions: Definitions,
                 report: Callable[[str, str], None] = _ignore) -> None:
        self._settings = settings
        self._player = PlayerMessages(settings, definitions)
        self._arrays = SignArrays(settings, definitions)
        self._markers = SignMarkers(settings, definitions)
        self._pictures = Pictures(definitions, report)
        self._key: object = None

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        self._settings = settings
        self._key = None
        if not enabled(settings, Demand()).markers:
            self._markers.restart()

    def samples(self) -> list[Sample]:
        """Return a sample of each message, for verification at start."""
        player, arrays, markers = self._player, self._arrays, self._markers
        return [
            sample_of((player.status,)), *[sample_of((each,)) for each in player.controls],
            *[sample_of((head, arrays.elements[topic], arrays.elements[topic]))
              for topic, head in arrays.heads.items()],
            sample_of((markers.head, *markers.elements.values(), markers.deletion)),
            sample_of((self._pictures.image,)), sample_of((self._pictures.classes,))]

    def encode(self, frame: Frame, cast: Cast, stamp_ns: int, demand: Demand, *,
               advanced: bool = True) -> Messages:
        """
        Encode what ``demand`` asks for.

        :param cast: of the registry, rows as in ``frame``.
        :param advanced: False for a frame whose clock did not advance: nothing is encoded.
        """
        extension = frame.extension
        if not advanced or not isinstance(extension, CarlaExtension):
            return []
        usable = frame.has_pose()
        key = (cast, demand, usable.tobytes(), extension.classes.tobytes(),
               extension.ids.tobytes(), extension.speed_limits.tobytes(),
               self._player.key(extension))
        if key != self._key:
            self._lay_out(frame, extension, cast, demand, usable)
            # An array that deletes markers is for one frame only.
            self._key = None if self._markers.is_transient else key
        messages: Messages = []
        if self._batches:
            numbers = self._numbers(frame, extension, stamp_ns)
            for batch in self._batches:
                messages += batch.messages(numbers)
        i_player = _row_of_player(extension)
        if extension.images and i_player >= 0:
            messages += self._pictures.encode(
                extension.images, cast.actors[i_player].frame_id, stamp_ns,
                lambda topic: demand.others is None or topic.name in demand.others)
        return messages

    def _lay_out(self, frame: Frame, extension: CarlaExtension, cast: Cast, demand: Demand,
                 usable: Bools) -> None:
        def is_wanted(topic: Topic) -> bool:
            return demand.others is None or topic.name in demand.others

        parts: list[MessageBlock] = []
        i_player = _row_of_player(extension)
        if extension.player is not None and i_player >= 0:
            parts += self._player.parts(extension.player, cast.actors[i_player].frame_id,
                                        is_wanted)
        parts += self._arrays.parts(
            extension, cast, [topic for topic in (LIGHTS_TOPIC, LIMITS_TOPIC) if is_wanted(topic)])
        if enabled(self._settings, demand).markers:
            parts += self._markers.parts(extension, usable)
        self._batches = parts
        self._tables = frozenset(table for part in parts for table in part.tables)

    def _numbers(self, frame: Frame, extension: CarlaExtension, stamp_ns: int) -> Numbers:
        """Return the numbers of all tables in use."""
        numbers = sign_numbers(frame, extension, self._tables)
        i_player = _row_of_player(extension)
        if i_player >= 0 and extension.player is not None and frame.forward_speed is not None:
            numbers |= player_numbers(extension, extension.player,
                                      float(frame.forward_speed[i_player]), self._tables)
        numbers[STAMP] = stamp_numbers(stamp_ns)
        return numbers


def _row_of_player(extension: CarlaExtension) -> int:
    """Return the row of the player, which comes first, or -1."""
    return 0 if len(extension.classes) and extension.classes[0] == CLASS_PLAYER else -1
