# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The evaluator: scores messages of a stack by the ground truth at their times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
import math
from typing import Any, Final

import numpy as np

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.evaluation import (
    ego_metrics,
    prediction_metrics,
    stack_messages,
    tracking_metrics,
)
from state_sensor_ros.evaluation.detection_metrics import ClassScores, score_classes
from state_sensor_ros.evaluation.frame_record import FrameRecord, FrameRecorder, Matches
from state_sensor_ros.evaluation.frame_transforms import FrameTransforms, turned
from state_sensor_ros.evaluation.ground_truth import EgoTrack, GroundTruth
from state_sensor_ros.evaluation.matching import EvaluatedFrame, Selection
from state_sensor_ros.evaluation.stack_messages import TopicKey, unit_pose
from state_sensor_ros.evaluation.track_record import TrackRecorder
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import CONJUGATE_XYZW, IDENTITY_XYZW, quaternion_product
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.base_link import BASE_LINK

AT_STAMP: Final = 'stamp'
# Time of receipt, ns, and message.
Messages = Iterable[tuple[int, bytes]]
# Called with the name of a topic and matches of it.
MatchObserver = Callable[[str, Matches], None]
# Time, ns, and what returns the pose and the speed of base_link then, None if it is not known.
_PoseAt = tuple[int, Callable[[EgoTrack], Floats | None]]
_UNKNOWN_XYZ: Floats = np.full(3, np.nan)


@dataclass(slots=True)
class TopicResult:
    """
    The result on one topic.

    ``topic`` its name; ``n_frames`` messages evaluated; ``n_without_truth`` those that have
    no ground truth or transform; ``n_without_transform`` those of them in a frame without a
    transform to the global frame;
    ``n_unusable`` objects, or messages of the ego, without a usable pose; ``record`` of the
    frames, None for the ego; ``classes``, ``tracking``, ``prediction`` and ``ego`` None if the
    topic has no such part; ``ego_stamps_ns`` (T,) of the poses of the ego;
    ``unplaced_child`` frame of the ego's poses that has no transform to base_link, '' for none;
    ``n_unsorted`` stamps of it that were not in order; ``n_repeated`` messages with the time of
    the one before; ``n_wrong`` objects with a negative size or no confidence.
    """

    topic: str
    n_frames: int = 0
    n_without_truth: int = 0
    n_without_transform: int = 0
    n_unusable: int = 0
    record: FrameRecord | None = None
    classes: list[ClassScores] | None = None
    tracking: tracking_metrics.TrackingScores | None = None
    prediction: prediction_metrics.PathSums | None = None
    ego: ego_metrics.EgoScores | None = None
    ego_stamps_ns: Rows | None = None
    unplaced_child: str = ''
    n_unsorted: int = 0
    n_repeated: int = 0
    n_wrong: int = 0


@dataclass(slots=True, kw_only=True)
class Evaluator:
    """Evaluate topics against one ground truth, which has the same clock as the stamps."""

    truth: GroundTruth
    selection: Selection  # of messages and objects
    at: str  # AT_STAMP or ``received``, the time at which ground truth is taken
    global_frame: str  # of the ground truth
    alignment: str  # ``none``, ``se3`` or ``sim3``, for the poses of the ego
    with_nuscenes: bool  # whether tracks are scored as by nuScenes, too
    # Returns the transforms of the bag; called once, and only if a message is in another frame.
    open_transforms: Callable[[], FrameTransforms]
    horizons_s: Sequence[float] = prediction_metrics.HORIZONS_S
    # Numbers of the most confident paths that count, beside all.
    path_counts: Sequence[int] = prediction_metrics.PATH_COUNTS
    # Called with the matches of each topic as they are found, None for no call.
    observe: MatchObserver | None = None
    transforms: FrameTransforms | None = None

    # Numbers of a stack may be so large that their squares are infinite.
    @np.errstate(all='ignore')
    def evaluate_objects(self, name: str, key: TopicKey, messages: Messages) -> TopicResult:
        """
        Evaluate a topic of objects.

        :param name: name of the bag.
        :param key: name and type of the topic.
        :param messages: messages of the topic.
        :raises DecodeError: if one is damaged.
        :raises TrajectoryFormatError: if none has ground truth.
        """
        topic, type_name = key
        if type_name in (stack_messages.TRACKED, stack_messages.PREDICTED):
            tracking_metrics.load_trackeval()
        result, span, last_ns = TopicResult(topic), _Span(f'{name}: {topic}'), None
        paths = prediction_metrics.PathScorer(self.truth, self.horizons_s, self.path_counts)
        recorder = FrameRecorder(None if self.observe is None else partial(self.observe, topic))
        # None once a message has no ids.
        tracks: TrackRecorder | None = TrackRecorder()
        has_objects = False
        for log_ns, data in messages:
            found = stack_messages.objects_in(data, type_name)
            at_ns = self._time_of(found, log_ns)
            span.add(at_ns)
            if not self.selection.has_time(at_ns, last_ns):
                continue
            frame = self._frame_of(found, type_name, at_ns, result)
            if frame is None:
                result.n_without_truth += 1
                continue
            last_ns = at_ns
            result.n_unusable += found.n_unusable
            result.n_wrong += found.n_wrong
            if found.objects.ids or found.has_ids:
                has_objects = True
                if not found.has_ids:
                    tracks = None
            recorder.add(frame)
            if tracks is not None:
                tracks.add(frame)
            if type_name == stack_messages.PREDICTED:
                paths.add(frame, at_ns)
        result.record = recorder.finish()
        result.n_frames = len(result.record.frames)
        self._check(name, result, span)
        result.classes = score_classes(result.record.classes)
        if tracks is not None and has_objects:
            tracking_metrics.load_trackeval()
            result.tracking = tracking_metrics.score_tracks(
                tracks.finish(), tracks.interpolated() if self.with_nuscenes else None)
        if type_name == stack_messages.PREDICTED:
            result.prediction = paths.finish()
        return result

    def _time_of(self, found: stack_messages.MessageObjects, log_ns: int) -> int:
        return found.stamp_ns if self.at == AT_STAMP else log_ns

    def _frame_of(self, found: stack_messages.MessageObjects, type_name: str, at_ns: int,
                  result: TopicResult) -> EvaluatedFrame | None:
        """Return a message beside the ground truth at a time, None without that or its frame."""
        truth = self.truth.at(at_ns)
        if truth is None:
            return None
        placed = self._placed(found.frame_id, found.stamp_ns)
        if placed is None:
            result.n_without_transform += 1
            return None
        return self.selection.match(
            found.stamp_ns, found.in_frame(*placed), *truth, self._ego_origin(at_ns),
            merges=type_name == stack_messages.DERIVED)

    @np.errstate(all='ignore')
    def evaluate_ego(self, name: str, key: TopicKey, messages: Messages) -> TopicResult:
        """
        Evaluate the odometry of the ego.

        :param name: name of the bag.
        :param key: name and type of the topic.
        :param messages: messages of the topic.
        :raises DecodeError: if one is damaged.
        :raises TrajectoryFormatError: if the ground truth has no ego, or none at a message.
        """
        topic, type_name = key
        result = TopicResult(topic)

        def pose_of(message: Any, stamp_ns: int,  # noqa: ANN401
                    ego: EgoTrack) -> Floats | None:
            pose = None if stack_messages.is_unknown(message.pose) else unit_pose(
                message.pose.pose.values)
            if pose is None:
                result.n_unusable += 1
                return None
            placed = self._placed(message.header.frame_id, stamp_ns)
            return None if placed is None else _at_base_link(
                pose, stack_messages.motion_of(message.twist), placed,
                self._base_link(message.child_frame_id, stamp_ns, ego, result))

        def poses() -> Iterator[_PoseAt]:
            for log_ns, data in messages:
                message = stack_messages.decode_flat(data, type_name)
                stamp_ns = stack_messages.nanoseconds(message.header.stamp)
                yield (stamp_ns if self.at == AT_STAMP else log_ns,
                       partial(pose_of, message, stamp_ns))
        return self._scored_ego(name, result, poses())

    def _scored_ego(self, name: str, result: TopicResult,
                    poses: Iterable[_PoseAt]) -> TopicResult:
        """Score poses and speeds of base_link in the global frame, (8,) each."""
        ego = self.truth.ego
        if ego is None:
            raise TrajectoryFormatError(self.truth.name, 'no ego',
                                        f'an ego to compare {result.topic} with')
        span = _Span(f'{name}: {result.topic}')
        times_ns: list[int] = []
        rows: list[Floats] = []
        for at_ns, pose_at in poses:
            span.add(at_ns)
            if not self.selection.has_time(at_ns, times_ns[-1] if times_ns else None):
                continue
            n_unusable, pose = result.n_unusable, pose_at(ego)
            if pose is not None:
                times_ns.append(at_ns)
                rows.append(pose)
            elif result.n_unusable == n_unusable:
                result.n_without_transform += 1
                result.n_without_truth += 1
        result.n_unsorted = span.n_late
        stamps_ns = np.array(times_ns, np.int64)
        order = stamps_ns.argsort(kind='stable')
        stamps_ns, stack = stamps_ns[order], np.array(rows).reshape(-1, 8)[order]
        _, truth, speeds = ego.at(stamps_ns)
        have_truth: Bools = np.logical_and.reduce(np.isfinite(truth), axis=1)
        result.n_frames = int(have_truth.sum())
        result.n_without_truth += int((~have_truth).sum())
        self._check(name, result, span)
        result.ego_stamps_ns = stamps_ns[have_truth]
        try:
            result.ego = ego_metrics.score_ego(
                ego_metrics.EgoPoses(stamps_ns, stack[:, :7], stack[:, 7]).select(have_truth),
                ego_metrics.EgoPoses(stamps_ns, truth, speeds).select(have_truth), self.alignment)
        except ego_metrics.DegenerateAlignmentError as error:
            raise TrajectoryFormatError(f'{name}: {result.topic}', 'positions on a line',
                                        'a curve, which can be aligned, or --align none'
                                        ) from error
        return result

    def _base_link(self, child: str, stamp_ns: int, ego: EgoTrack,
                   result: TopicResult) -> tuple[Floats, Floats]:
        """Return orientation and origin of base_link in the child frame of a message."""
        own_turn: Floats = np.array(IDENTITY_XYZW)
        if child in ego.frames:
            return own_turn, ego.offset
        if child not in ('', BASE_LINK):
            there = self._transformed(child, BASE_LINK, stamp_ns)
            if there is not None:
                return there
            result.unplaced_child = child
        return own_turn, np.zeros(3)

    def _ego_origin(self, at_ns: int) -> Floats:
        if self.truth.ego is None:
            return _UNKNOWN_XYZ
        origin: Floats = self.truth.ego.at(np.array([at_ns], np.int64))[0][0]
        return origin

    def _placed(self, frame_id: str, stamp_ns: int) -> tuple[Floats, Floats] | None:
        """Return orientation and origin of a frame in the global frame; None if unknown."""
        if frame_id.removeprefix('/') in ('', self.global_frame):
            return np.array(IDENTITY_XYZW), np.zeros(3)
        return self._transformed(self.global_frame, frame_id, stamp_ns)

    def _transformed(self, target: str, source: str,
                     stamp_ns: int) -> tuple[Floats, Floats] | None:
        return self._loaded().between(target, source, stamp_ns)

    def _loaded(self) -> FrameTransforms:
        if self.transforms is None:
            self.transforms = self.open_transforms()
        return self.transforms

    def _check(self, name: str, result: TopicResult, span: _Span) -> None:
        """Check that at least one message has been evaluated."""
        result.n_repeated = span.n_repeated
        if result.n_frames:
            return
        where = f'{name}: {result.topic}'
        if result.n_unusable and not result.n_without_truth:
            raise TrajectoryFormatError(
                where, f'{counted(result.n_unusable, "pose")} that are not finite or not '
                'rotations',
                'at least one other pose')
        if result.n_without_transform:
            raise TrajectoryFormatError(
                where, f'no transform from its frame to {self.global_frame}',
                'a transform in /tf or /tf_static, or -p global_frame:=NAME')
        stamps = self.truth.stamps_ns
        span_of_truth = f'{stamps[0] * 1e-9:.3f} s to {stamps[-1] * 1e-9:.3f} s' \
            if len(stamps) else 'none'
        raise TrajectoryFormatError(
            where, f'stamps {span}', f'stamps within those of {self.truth.name}, {span_of_truth}, '
            'and within the selection (--at, -p stamp_source, --start, --end)')


def _at_base_link(pose: Floats, twist: Floats, placed: tuple[Floats, Floats],
                  base_link: tuple[Floats, Floats]) -> Floats:
    """
    Return (8,) the pose of base_link in the global frame, and its speed forward.

    :param pose: (7,) float64, of the child frame in its frame.
    :param twist: (6,) float64, of the child frame in its own axes.
    :param placed: orientation and origin of the frame in the global frame.
    :param base_link: orientation and origin of base_link in the child frame.
    """
    (turn, origin), (own_turn, offset) = placed, base_link
    velocity = twist[:3] + np.cross(twist[3:], offset)
    return np.concatenate((
        turned(turn, pose[:3] + turned(pose[3:], offset)) + origin,
        quaternion_product(turn, quaternion_product(pose[3:], own_turn)),
        turned(own_turn * CONJUGATE_XYZW, velocity)[:1]))


# Messages that are late by less come from several threads.
_RESTART_NS = 1_000_000_000


class _Span:
    """The least and the greatest stamp, and how many are less than an earlier one."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._least, self._greatest = math.inf, -math.inf
        self.n_late = self.n_repeated = 0
        self._last: int | None = None

    def add(self, stamp_ns: int) -> None:
        if self._greatest - stamp_ns > _RESTART_NS:
            raise TrajectoryFormatError(
                self._where, f'{stamp_ns * 1e-9:.3f} s after {self._greatest * 1e-9:.3f} s',
                'stamps of one run: the clock begins again')
        self.n_late += stamp_ns < self._greatest
        self.n_repeated += stamp_ns == self._last
        self._last = stamp_ns
        self._least = min(self._least, stamp_ns)
        self._greatest = max(self._greatest, stamp_ns)

    def __str__(self) -> str:
        if self._least > self._greatest:
            return 'of no message'
        return f'{self._least * 1e-9:.3f} s to {self._greatest * 1e-9:.3f} s'
