# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The ground truth of `state_sensor evaluate`: any recording, or a bag of objects."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from state_sensor_ros.classes import TagRule
from state_sensor_ros.commands.options import ego_of
from state_sensor_ros.commands.reading import read_frames, warn_of_unmatched, Warnings
from state_sensor_ros.commands.terminal import print_line
from state_sensor_ros.errors import ConfigError, DecodeError, no_frames, TrajectoryFormatError
from state_sensor_ros.evaluation.messages import (
    decode_flat,
    EGO_TOPIC,
    nanoseconds,
    objects_in,
    ODOMETRY,
    TRACKED,
    truth_topic,
    unit_pose,
)
from state_sensor_ros.evaluation.truth import (
    EgoTrack,
    FrameGroundTruth,
    GroundTruth,
    GroundTruthBuilder,
)
from state_sensor_ros.files import format_of, open_any, ReadOptions
from state_sensor_ros.files.bag import Bag, is_bag
from state_sensor_ros.files.bag_frames import stamp_of, STATE_FRAME
from state_sensor_ros.files.frame_selection import RecordingSelection, SelectedNames
from state_sensor_ros.frame import Floats, NS_PER_S
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.parameters import near_names
from state_sensor_ros.rotations import IDENTITY_XYZW
from state_sensor_ros.settings import Settings


def read_truth(args: argparse.Namespace, settings: Settings) -> GroundTruth:
    """
    Read the ground truth.

    :param args: ``truth``, ``truth_topic``, ``actors`` and ``quiet`` are used.
    :param settings: settings of the node.
    :raises TrajectoryFormatError: if it cannot be read or has no frame.
    """
    if settings.stamp_source == 'ros':
        raise ConfigError('stamp_source', 'ros', 'game_time or utc: a recording is not live')
    stamps_ns: list[int] | None = None
    # An OSI trace may be an MCAP file, too.
    if is_bag(Path(args.truth)) and format_of(args.truth).storage:
        with closing(Bag(Path(args.truth))) as bag:
            frames = [key for key in bag.with_messages() if key[1] == STATE_FRAME
                      and args.truth_topic in ('', key[0])]
            if not frames:
                return _of_objects(args, bag, settings)
            stamps_ns = _header_stamps(bag, frames[0])
    return _of_frames(args, settings, stamps_ns)


def _header_stamps(bag: Bag, key: tuple[str, str]) -> list[int]:
    """Return the exact stamps of the frames of a bag; ``game_time`` is rounded."""
    # A message too short for a stamp never becomes a frame; its number is not used.
    stamps = (stamp_of(data) or (0, 0) for _, _, data in bag.messages({key}))
    return [seconds * NS_PER_S + nanoseconds for seconds, nanoseconds in stamps]


def _of_frames(args: argparse.Namespace, settings: Settings,
               stamps_ns: list[int] | None) -> GroundTruth:
    """Read a recording of frames; ``stamps_ns`` are the stamps of a bag, None for others."""
    rule = TagRule(tuple(args.desired_tags), tuple(args.undesired_tags))
    actors = frozenset(args.actors)
    warnings = Warnings(args.truth)
    tagged: set[str] = set()

    def selects(name: str, tags: tuple[str, ...]) -> bool:
        has_tags = rule.passes(tags)
        if has_tags:
            tagged.add(name)
        return (not actors or name in actors) and has_tags

    tag, origin = ego_of(args)
    names = SelectedNames(RecordingSelection(
        tuple(args.desired_tags), tuple(args.undesired_tags), tuple(args.actors), ego=tag,
        ego_from=origin))

    reader = open_any(args.truth, ReadOptions(settings, args.truth_topic))
    with closing(FrameLoop(reader)) as recording:
        truth = FrameGroundTruth(args.truth, settings, selects, warnings.add)
        for frame in read_frames(recording, 'ground truth', is_quiet=args.quiet):
            warnings.place = recording.place
            names.add(frame)
            truth.add(frame, None if stamps_ns is None else stamps_ns[recording.index])
        found = truth.finish()
    warnings.show()
    warn_of_unmatched(args.truth, (
        *truth.assumptions.lines, *truth.jumps.lines,
        *names.lines(is_empty=not rule.passes_all and not tagged)))
    return _checked(args, found)


def _of_objects(args: argparse.Namespace, bag: Bag, settings: Settings) -> GroundTruth:
    """Read another program's bag of TrackedObjects, with the ego's odometry if the bag has it."""
    key = truth_topic(args.truth, bag.with_messages(), args.truth_topic)
    if args.desired_tags or args.undesired_tags:
        raise ConfigError('--desired-tags, --undesired-tags', f'TRUTH {args.truth}, a bag of '
                          'objects, which have no tags', 'TRUTH with frames, or --actors')
    actors = frozenset(args.actors)
    builder = GroundTruthBuilder(args.truth)
    seen: set[str] = set()

    def add(data: bytes) -> None:
        message = objects_in(data, TRACKED)
        if message.frame_id.removeprefix('/') not in ('', settings.global_frame):
            raise TrajectoryFormatError(f'{args.truth}: {key[0]}',
                                        f'objects in the frame {message.frame_id}',
                                        f'the frame {settings.global_frame}; -p '
                                        'global_frame:=NAME selects another')
        objects = message.in_frame(np.array(IDENTITY_XYZW), np.zeros(3))
        seen.update(objects.ids)
        builder.add(message.stamp_ns, objects, np.array(
            [not actors or name in actors for name in objects.ids], np.bool_))

    _decoded(bag, key, add)
    _check_actors(actors, seen)
    return _checked(args, builder.finish(_ego_of(bag)))


def _ego_of(bag: Bag) -> EgoTrack | None:
    """Return the ego at base_link from its odometry, None without a pose."""
    key = EGO_TOPIC, ODOMETRY
    poses: dict[int, Floats] = {}
    speeds: dict[int, float] = {}
    if key not in bag.topics:
        return None

    def add(data: bytes) -> None:
        message = decode_flat(data, ODOMETRY)
        pose = unit_pose(message.pose.pose.values)
        if pose is not None:
            stamp_ns = nanoseconds(message.header.stamp)
            poses[stamp_ns] = pose
            speeds[stamp_ns] = float(message.twist.twist.values[0])

    _decoded(bag, key, add)
    if not poses:
        return None
    stamps = sorted(poses)
    rows = np.stack([poses[stamp] for stamp in stamps])
    return EgoTrack(np.array(stamps, np.int64), rows[:, :3], rows,
                    np.array([speeds[stamp] for stamp in stamps]), frozenset(), np.zeros(3))


def _decoded(bag: Bag, key: tuple[str, str], add: Callable[[bytes], None]) -> None:
    """Pass each message of a topic to ``add``."""
    bag.check_definition(key)
    for _, _, data in bag.messages({key}):
        try:
            add(data)
        except DecodeError as error:
            raise TrajectoryFormatError(f'{bag.name}: {key[0]}', error.found,
                                        error.expected) from error


def _check_actors(actors: frozenset[str], seen: set[str]) -> None:
    for name in sorted(actors - seen):
        print_line(f'warning: --actors {name}: the ground truth has no such object'
                   + near_names([name], seen))


def _checked(args: argparse.Namespace, truth: GroundTruth) -> GroundTruth:
    if not len(truth.stamps_ns):
        raise no_frames(truth.name)
    if (args.actors or args.desired_tags or args.undesired_tags) and truth.names \
            and not truth.are_selected.any():
        raise TrajectoryFormatError(truth.name, 'no selected object in any frame',
                                    'at least one selected object beside the ego')
    return truth
