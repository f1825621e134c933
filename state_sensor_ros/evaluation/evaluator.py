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

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
import math
from typing import Any, Final

import numpy as np

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.evaluation import detection, ego, messages, prediction, tracking
from state_sensor_ros.evaluation import truth as truths
from state_sensor_ros.evaluation.matching import EvaluatedFrame, NOTHING, Selection
from state_sensor_ros.evaluation.messages import TopicKey
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import CONJUGATE_XYZW, IDENTITY_XYZW, quaternion_product
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.transforms import BASE_LINK

AT_STAMP: Final = 'stamp'
# Time of receipt, ns, and message.
Messages = Iterable[tuple[int, bytes]]
_UNMOVED: truths.Placed = (np.array(IDENTITY_XYZW), np.zeros(3))
# Messages that are late by less come from several threads.
_RESTART_NS = 1_000_000_000
# Messages that are nearer are one answer; stamps may be rounded.
_SAME_NS = 100_000
# A longer interval than so many usual ones has unanswered frames.
_ALMOST = 0.1


@dataclass(slots=True)
class TopicResult:
    """The result on one topic; the parts that it does not have are None."""

    topic: str
    n_frames: int = 0  # messages evaluated
    n_without_truth: int = 0  # those without ground truth or transform
    # Messages that the stack left out, see missing_times, or that have no transform.
    n_unanswered: int = 0
    unplaced_ns: list[int] = field(default_factory=list)  # times of those without transform
    faults: Counter[str] = field(default_factory=Counter)  # by the keys of messages.FAULTS
    frames: Sequence[EvaluatedFrame] = ()  # with the empty ones in place of unanswered ones
    classes: list[detection.ClassScores] | None = None
    tracking: tracking.TrackingScores | None = None
    no_tracking: str = ''  # why ids are not those of tracks, '' if they are
    prediction: prediction.PathScorer | None = None
    ego: ego.EgoScores | None = None
    ego_stamps_ns: Rows | None = None  # (T,)
    unplaced_child: str = ''  # frame of the ego's poses without a transform to base_link


@dataclass(kw_only=True)
class Evaluator:
    """Evaluate topics against one ground truth, which has the same clock as the stamps."""

    truth: truths.GroundTruth
    selection: Selection  # of messages and objects
    at: str  # AT_STAMP or ``received``, the time at which ground truth is taken
    global_frame: str  # of the ground truth
    alignment: str  # ``none``, ``se3`` or ``sim3``, for the poses of the ego
    with_nuscenes: bool  # whether tracks are scored as by nuScenes, too
    # Returns the transforms of the bag; called once, and only if a message is in another frame.
    open_transforms: Callable[[], truths.FrameTransforms]
    horizons_s: Sequence[float] = prediction.HORIZONS_S
    # Numbers of the most confident paths that count, beside all.
    path_counts: Sequence[int] = prediction.PATH_COUNTS

    # Numbers of a stack may be so large that their squares are infinite.
    @np.errstate(all='ignore')
    def evaluate_objects(self, name: str, key: TopicKey, received: Messages) -> TopicResult:
        """
        Evaluate a topic of objects.

        :param name: name of the bag.
        :param key: name and type of the topic.
        :param received: messages of the topic.
        :raises DecodeError: if one is damaged.
        :raises TrajectoryFormatError: if none has ground truth.
        """
        topic, type_name = key
        if type_name in (messages.TRACKED, messages.PREDICTED):
            tracking.load_trackeval()
        result, span = TopicResult(topic), _Span(f'{name}: {topic}')
        paths = prediction.PathScorer(self.truth, self.horizons_s, self.path_counts)
        timed: list[tuple[int, EvaluatedFrame]] = []
        has_ids, has_objects, best, last_ns = True, False, 0.0, None
        for log_ns, data in received:
            found = messages.objects_in(data, type_name)
            at_ns = found.stamp_ns if self.at == AT_STAMP else log_ns
            if not span.add(at_ns) or not self.selection.has_time(at_ns, last_ns):
                continue
            frame = self._frame_of(found, type_name, at_ns, result)
            if frame is None:
                result.n_without_truth += 1
                continue
            last_ns = at_ns
            result.faults += found.faults
            ids = found.objects.ids
            if ids or found.has_ids:
                has_objects, has_ids = True, has_ids and found.has_ids
            if found.has_ids and len(set(ids)) < len(ids) and not result.no_tracking:
                result.no_tracking = _repeated(found.stamp_ns, *Counter(ids).most_common(1)[0])
            best = max(best, float(found.objects.scores.max(initial=0.0)))
            if type_name == messages.PREDICTED:
                paths.add(frame, at_ns)
                frame = replace(frame, stack=replace(frame.stack, paths=()))
            timed.append((at_ns, frame))
        result.n_frames = len(timed)
        result.faults['repeated'] += span.n_repeated
        self._check(name, result, span)
        result.frames = self._filled(timed, result, merges=type_name == messages.DERIVED)
        result.classes = detection.score_classes(result.frames)
        if not best:
            result.faults['confidence'] = sum(each.n_detections for each in result.classes)
        if has_ids and has_objects:
            self._score_tracks(result)
        if type_name == messages.PREDICTED:
            result.prediction = paths
        return result

    def _score_tracks(self, result: TopicResult) -> None:
        if self.truth.repeated is not None:
            result.no_tracking = f'{self.truth.name}: ' + _repeated(*self.truth.repeated)
        if not result.no_tracking:
            tracking.load_trackeval()
            result.tracking = tracking.score_tracks(
                result.frames, with_nuscenes=self.with_nuscenes)

    def _frame_of(self, found: messages.MessageObjects, type_name: str, at_ns: int,
                  result: TopicResult) -> EvaluatedFrame | None:
        """Return a message beside the ground truth at a time, None without that or its frame."""
        truth = self.truth.at(at_ns)
        if truth is None:
            return None
        placed = self._placed(found.frame_id, found.stamp_ns)
        if placed is None:
            result.faults['transform'] += 1
            result.unplaced_ns.append(at_ns)
            return None
        return self.selection.match(
            found.stamp_ns, found.in_frame(*placed), *truth, self._ego_origin(at_ns),
            merges=type_name == messages.DERIVED)

    def _filled(self, timed: list[tuple[int, EvaluatedFrame]], result: TopicResult, *,
                merges: bool) -> list[EvaluatedFrame]:
        """Return frames by their times, with an empty one for each that the stack left out."""
        times_ns = [*(at_ns for at_ns, _ in timed), *result.unplaced_ns]
        for at_ns in (*result.unplaced_ns, *missing_times(
                times_ns, self.truth.stamps_ns, self.selection).tolist()):
            truth = self.truth.at(at_ns)
            if truth is not None:
                timed.append((at_ns, self.selection.match(
                    at_ns, NOTHING, *truth, self._ego_origin(at_ns), merges=merges)))
        result.n_unanswered = len(timed) - result.n_frames
        return [frame for _, frame in sorted(timed, key=lambda each: each[0])]

    @np.errstate(all='ignore')
    def evaluate_ego(self, name: str, key: TopicKey, received: Messages) -> TopicResult:
        """
        Evaluate the odometry of the ego.

        :param name: name of the bag.
        :param key: name and type of the topic.
        :param received: messages of the topic.
        :raises DecodeError: if one is damaged.
        :raises TrajectoryFormatError: if the ground truth has no ego, or none at a message.
        """
        topic, type_name = key
        result = TopicResult(topic)

        track = self.truth.ego
        if track is None:
            raise TrajectoryFormatError(self.truth.name, 'no ego',
                                        f'an ego to compare {topic} with')
        span = _Span(f'{name}: {topic}')
        times_ns: list[int] = []
        rows: list[Floats] = []
        for log_ns, data in received:
            message = messages.decode_flat(data, type_name)
            stamp_ns = messages.nanoseconds(message.header.stamp)
            at_ns = stamp_ns if self.at == AT_STAMP else log_ns
            if span.add(at_ns) and self.selection.has_time(
                    at_ns, times_ns[-1] if times_ns else None):
                pose = self._pose_of(message, stamp_ns, track, result)
                if pose is not None:
                    times_ns.append(at_ns)
                    rows.append(pose)
        result.faults.update({'order': span.n_late, 'repeated': span.n_repeated})
        stamps_ns = np.array(times_ns, np.int64)
        order = stamps_ns.argsort(kind='stable')
        stamps_ns, stack = stamps_ns[order], np.array(rows).reshape(-1, 8)[order]
        truth = track.at(stamps_ns)
        have_truth: Bools = np.logical_and.reduce(np.isfinite(truth[:, :7]), axis=1)
        result.n_frames = int(have_truth.sum())
        result.n_without_truth += int((~have_truth).sum())
        self._check(name, result, span)
        result.ego_stamps_ns = stamps_ns[have_truth]
        result.n_unanswered = len(missing_times(result.ego_stamps_ns.tolist(), track.stamps_ns,
                                                self.selection))
        try:
            result.ego = ego.score_ego(stack[have_truth], truth[have_truth, :8], self.alignment)
        except ego.DegenerateAlignmentError as error:
            raise TrajectoryFormatError(f'{name}: {topic}', 'positions on a line',
                                        'a curve, which can be aligned, or --align none'
                                        ) from error
        return result

    def _pose_of(self, message: Any, stamp_ns: int, track: truths.EgoTrack,  # noqa: ANN401
                 result: TopicResult) -> Floats | None:
        """Return pose and speed of base_link in the global frame, (8,), None if unknown."""
        result.faults['frame'] += not message.header.frame_id
        pose = None if messages.is_unknown(message.pose) else messages.unit_pose(
            message.pose.pose.values)
        placed = self._placed(message.header.frame_id, stamp_ns)
        if pose is not None and placed is not None:
            return _at_base_link(pose, messages.motion_of(message.twist), placed,
                                 self._base_link(message.child_frame_id, stamp_ns, track, result))
        result.faults['pose' if pose is None else 'transform'] += 1
        result.n_without_truth += pose is not None
        return None

    def _base_link(self, child: str, stamp_ns: int, track: truths.EgoTrack,
                   result: TopicResult) -> truths.Placed:
        """Return orientation and origin of base_link in the child frame of a message."""
        if child in track.frames:
            return _UNMOVED[0], track.offset
        if child not in ('', BASE_LINK):
            there = self._transforms.between(child, BASE_LINK, stamp_ns)
            if there is not None:
                return there
            result.unplaced_child = child
        return _UNMOVED

    def _ego_origin(self, at_ns: int) -> Floats:
        if self.truth.ego is None:
            return np.full(3, np.nan)
        origin: Floats = self.truth.ego.at(np.array([at_ns], np.int64))[0, 8:]
        return origin

    def _placed(self, frame_id: str, stamp_ns: int) -> truths.Placed | None:
        """Return orientation and origin of a frame in the global frame; None if unknown."""
        if frame_id.removeprefix('/') in ('', self.global_frame):
            return _UNMOVED
        return self._transforms.between(self.global_frame, frame_id, stamp_ns)

    @cached_property
    def _transforms(self) -> truths.FrameTransforms:
        return self.open_transforms()

    def _check(self, name: str, result: TopicResult, span: _Span) -> None:
        """Check that at least one message has been evaluated."""
        if result.n_frames:
            return
        where = f'{name}: {result.topic}'
        if result.faults['pose'] and not result.n_without_truth:
            raise TrajectoryFormatError(
                where, f'{counted(result.faults["pose"], "pose")} that are not finite or not '
                'rotations', 'at least one other pose')
        if result.faults['transform']:
            raise TrajectoryFormatError(
                where, f'no transform from its frame to {self.global_frame}',
                'a transform in /tf or /tf_static, or -p global_frame:=NAME')
        stamps = self.truth.stamps_ns
        raise TrajectoryFormatError(
            where, f'stamps {span}', f'stamps within those of {self.truth.name}, '
            f'{stamps[0] * 1e-9:.3f} s to {stamps[-1] * 1e-9:.3f} s, and within the selection '
            '(--at, -p stamp_source, --start, --end)')


def _repeated(stamp_ns: int, id_: str, n_objects: int = 2) -> str:
    return f'{stamp_ns * 1e-9:.3f} s: {n_objects} objects have the id {id_}'


def missing_times(times_ns: Sequence[int], truth_ns: Rows, selection: Selection) -> Rows:
    """
    Return the times at which a stack did not answer, at its own median interval.

    :param times_ns: times of its messages, at least one.
    :param truth_ns: (T,) int64, times of the ground truth: its first and last one that are
        selected are the limits.
    """
    times = np.unique(np.array(times_ns, np.int64))
    judged = truth_ns[(truth_ns >= selection.start_ns) & (truth_ns <= selection.end_ns)]
    steps = np.diff(times)[np.diff(times) > _SAME_NS]
    steps = steps if len(steps) else np.diff(judged)
    if not len(steps) or not len(judged):
        return times[:0]
    step_ns = float(np.median(steps))
    gaps = np.diff(times) / step_ns
    found = [np.arange(1, int(gap + _ALMOST)) * (gap / int(gap + _ALMOST)) * step_ns + begin
             for begin, gap in zip(times.tolist(), gaps.tolist(), strict=False)
             if gap >= 2.0 - _ALMOST]
    for end, way, sign in ((times[0], times[0] - judged[0], -1), (
            times[-1], judged[-1] - times[-1], 1)):
        found.append(end + sign * step_ns * np.arange(1, int(max(way, 0) / step_ns + _ALMOST) + 1))
    return np.sort(np.concatenate(found)).astype(np.int64)


def _at_base_link(pose: Floats, twist: Floats, placed: truths.Placed,
                  base_link: truths.Placed) -> Floats:
    """
    Return (8,) the pose of base_link in the global frame, and its speed forward.

    :param pose: (7,) float64, of the child frame in its frame.
    :param twist: (6,) float64, of the child frame in its own axes.
    :param placed: orientation and origin of the frame in the global frame.
    :param base_link: orientation and origin of base_link in the child frame.
    """
    (turn, origin), (own_turn, offset) = placed, base_link
    return np.concatenate((
        truths.turned(turn, pose[:3] + truths.turned(pose[3:], offset)) + origin,
        quaternion_product(turn, quaternion_product(pose[3:], own_turn)),
        truths.turned(own_turn * CONJUGATE_XYZW, twist[:3] + np.cross(twist[3:], offset))[:1]))


class _Span:
    """The stamps: the least and the greatest one, and which are late or repeated."""

    def __init__(self, where: str) -> None:
        self._where, self._last, self._seen = where, -_SAME_NS, set[int]()
        self._least, self._greatest = math.inf, -math.inf
        self.n_late = self.n_repeated = 0

    def add(self, stamp_ns: int) -> bool:
        """Add a stamp; return whether it is the first one of its time."""
        if self._greatest - stamp_ns > _RESTART_NS:
            raise TrajectoryFormatError(
                self._where, f'{stamp_ns * 1e-9:.3f} s after {self._greatest * 1e-9:.3f} s',
                'stamps of one run: the clock begins again')
        self.n_late += stamp_ns < self._greatest
        is_new = stamp_ns not in self._seen and abs(stamp_ns - self._last) >= _SAME_NS
        self.n_repeated += not is_new
        self._seen.add(stamp_ns)
        self._last, self._least, self._greatest = (
            stamp_ns, min(self._least, stamp_ns), max(self._greatest, stamp_ns))
        return is_new

    def __str__(self) -> str:
        return 'of no message' if self._least > self._greatest else \
            f'{self._least * 1e-9:.3f} s to {self._greatest * 1e-9:.3f} s'
