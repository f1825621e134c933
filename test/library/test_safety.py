# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measures of safety: hand-worked cases, shapely, events, and what commands and tables show."""

from dataclasses import replace
import json
import math

from budgets import each_once
import numpy as np
from paths import SAMPLE
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.frame import Boxes, Frame, Lanes
from state_sensor_ros.library.safety import SafetyCollector
from state_sensor_ros.objects.criticality import (
    distances,
    overlap,
    PlanarBoxes,
    Situation,
    times_to_collision,
)
from state_sensor_ros.rotations import quaternion_from_rpy

LENGTH, WIDTH = 4.6, 1.85
NAMES = ('Ego', 'Other', 'Third', 'Fourth')


def frame_of(time, *actors, lanes=(), yaw_rates=(0.0,) * 4, tags=('ego', 'vehicle')):
    """Return a frame of cars, each (x, y, yaw, speed); lanes (row, road, section, lane, s)."""
    rows = np.zeros((len(actors), 13))
    for row, (x, y, yaw, speed) in zip(rows, actors, strict=True):
        row[:3] = x, y, 0.75
        row[3:7] = quaternion_from_rpy(np.array([[0.0, 0.0, yaw]]))[0]
        row[7:9] = speed * math.cos(yaw), speed * math.sin(yaw)
    rows[:, 12] = yaw_rates[:len(actors)]
    n_actors = len(actors)
    boxes = np.concatenate((rows[:, :7], np.tile((LENGTH, WIDTH, 1.5, 1.0, 1.0, 1.0),
                                                 (n_actors, 1))), axis=1)
    return Frame(
        'v2', time, 0, 0, NAMES[:n_actors], np.ones(n_actors, np.uint8),
        (tags, *[('vehicle',)] * (n_actors - 1))[:n_actors], rows,
        Lanes(np.array([lane[0] for lane in lanes], np.int64),
              np.zeros((len(lanes), 2), np.bool_),
              np.array([lane[1:4] for lane in lanes], np.int32).reshape(-1, 3),
              np.array([lane[4] for lane in lanes], np.float64)),
        Boxes(np.arange(n_actors), ('',) * n_actors, boxes))


def criticality_of(*actors, **options):
    return Situation(frame_of(0.0, *actors, **options)).criticality(0)


def safety_of(frames):
    collector = SafetyCollector('ego')
    for frame in frames:
        collector.add(frame)
    return collector.safety()


def random_boxes(chance, n_boxes):
    angles = chance.uniform(-math.pi, math.pi, n_boxes)
    return PlanarBoxes(
        chance.uniform(-12.0, 12.0, (n_boxes, 2)),
        np.column_stack((np.cos(angles), np.sin(angles))), chance.uniform(0.2, 4.0, (n_boxes, 2)),
        chance.uniform(-10.0, 10.0, (n_boxes, 2)), np.zeros(n_boxes), np.zeros((n_boxes, 2)))


def test_distances_and_times_to_collision_are_those_of_shapely():
    affinity = pytest.importorskip('shapely.affinity', reason='needs shapely')
    from shapely import Polygon
    chance = np.random.default_rng(1)
    n_boxes = 120
    some, others = random_boxes(chance, n_boxes), random_boxes(chance, n_boxes)

    def polygon(boxes, i):
        along = boxes.headings[i] * boxes.halves[i, 0]
        across = np.array([-boxes.headings[i, 1], boxes.headings[i, 0]]) * boxes.halves[i, 1]
        return Polygon(boxes.centers[i] + np.array(
            [along + across, along - across, -along - across, -along + across]))

    found, times = distances(some, others), times_to_collision(some, others)
    n_hits = 0
    for i in range(n_boxes):
        one, other = polygon(some, i), polygon(others, i)
        assert found[i] == pytest.approx(one.distance(other), abs=1e-9)
        assert overlap(some, others)[i] == one.intersects(other)
        motion = others.velocities[i] - some.velocities[i]

        def moved(time, other=other, motion=motion):
            return affinity.translate(other, *(motion * time))

        if math.isnan(times[i]):
            assert not any(moved(time).intersects(one) for time in np.arange(0.0, 12.0, 0.1))
        elif times[i] > 0.0:
            n_hits += 1
            assert moved(times[i] + 1e-7).distance(one) < 1e-5
            assert not moved(times[i] - 1e-6).intersects(one)
        else:
            assert one.intersects(other)
    assert 10 < n_hits < 100


def test_two_cars_in_line():
    found = criticality_of((0.0, 0.0, 0.0, 20.0), (50.0, 0.5, 0.0, 10.0))
    gap = 50.0 - LENGTH
    assert found.gap == pytest.approx(gap)
    assert found.time_headway == pytest.approx(gap / 20.0)
    assert found.time_to_collision == pytest.approx(gap / 10.0)
    assert found.required_deceleration == pytest.approx(10.0 ** 2 / (2.0 * gap))
    assert found.closest_distance == pytest.approx(gap)
    assert (found.lead, found.partner, found.closest) == (1, 1, 1)
    # A faster one ahead needs no braking; one behind or beside leads nobody.
    assert criticality_of((0.0, 0.0, 0.0, 5.0), (50.0, 0.0, 0.0, 10.0)).required_deceleration == 0
    for other in ((-50.0, 0.0, 0.0, 10.0), (50.0, 3.5, 0.0, 10.0), (20.0, 0.0, math.pi / 2, 1.0)):
        found = criticality_of((0.0, 0.0, 0.0, 20.0), other)
        assert found.lead == -1
        assert math.isnan(found.gap)
        assert math.isnan(found.time_headway)
        assert math.isnan(found.required_deceleration)
    # A stationary actor has no headway, an actor on a bridge no conflict.
    assert math.isnan(criticality_of((0.0, 0.0, 0.0, 0.0), (50.0, 0.0, 0.0, 1.0)).time_headway)
    frame = frame_of(0.0, (0.0, 0.0, 0.0, 20.0), (50.0, 0.0, 0.0, 10.0))
    rows, boxes = frame.kinematics.copy(), frame.boxes.rows.copy()
    rows[1, 2] = boxes[1, 2] = 7.0
    above = Frame('v2', 0.0, 0, 0, frame.names, frame.kinds, frame.tags, rows, frame.lanes,
                  Boxes(frame.boxes.actor, frame.boxes.names, boxes))
    assert math.isnan(Situation(above).criticality(0).closest_distance)


@pytest.mark.parametrize('side', [1.0, -1.0])
def test_gap_in_a_curve_is_along_it(side):
    radius, speed, turned = 50.0, 10.0, math.radians(60.0)
    ahead = (radius * math.sin(turned), side * radius * (1.0 - math.cos(turned)), side * turned,
             speed)
    found = criticality_of((0.0, 0.0, 0.0, speed), ahead, yaw_rates=(side * speed / radius, 0.0))
    assert found.lead == 1
    assert found.gap == pytest.approx(radius * turned - LENGTH)
    # Seen along a straight path it would be none.
    assert criticality_of((0.0, 0.0, 0.0, speed), ahead).lead == -1


def test_lane_tells_the_lead_vehicle_in_a_section():
    own, near, far = (0.0, 0.0, 0.0, 20.0), (30.0, 1.0, 0.0, 10.0), (30.0, 40.0, math.pi, 10.0)
    # Along the road, against it, and along it in left-hand traffic.
    for lane, s in ((-1, (10.0, 40.0, 90.0)), (1, (90.0, 60.0, 10.0)), (1, (10.0, 40.0, 90.0))):
        found = criticality_of(own, near, far, lanes=[
            (0, 5, 0, lane, s[0]), (1, 5, 0, 2 * lane, s[1]), (2, 5, 0, lane, s[2])])
        # Beyond a hairpin, although another one is in the way.
        assert found.lead == 2
        assert found.gap > 40.0
    for s in (10.0, 70.0):
        assert criticality_of(own, (-30.0, 0.0, 0.0, 20.0), lanes=[
            (0, 5, 0, 1, 40.0), (1, 5, 0, 1, s)]).lead == -1
    # Also if the first frame does not know how it turns.
    assert criticality_of(own, (30.0, 0.0, 0.0, 10.0), yaw_rates=(math.nan,) * 4, lanes=[
        (0, 5, 0, 1, 90.0), (1, 5, 0, 1, 60.0)]).lead == 1
    # Another section may number its lanes in another way.
    assert criticality_of(own, near, lanes=[(0, 5, 0, -1, 10.0), (1, 5, 1, -2, 40.0)]).lead == 1


@pytest.mark.parametrize('turned', [0.0, 0.3])
def test_vehicle_that_comes_toward_the_ego_in_its_lane_is_no_lead(turned):
    radius = 100.0
    place = (20.0, 0.5) if not turned else (
        radius * math.sin(turned), radius * (1.0 - math.cos(turned)))
    found = criticality_of((0.0, 0.0, 0.0, 10.0), (*place, turned + math.pi, 10.0),
                           lanes=[(0, 5, 0, -1, 10.0), (1, 5, 0, -1, 30.0)])
    assert (found.lead, math.isnan(found.gap)) == (-1, True)
    if not turned:
        assert found.time_to_collision == pytest.approx((20.0 - LENGTH) / 20.0)


def test_crossing_paths():
    def at(time, start):
        return frame_of(time, (-50.0 + 10.0 * time, 0.0, 0.0, 10.0),
                        (0.0, start - 10.0 * time, -math.pi / 2, 10.0))

    # Both edges are 3.225 m from the center of the crossing: the other one leaves it at 4.3225 s.
    assert math.isnan(Situation(at(0.0, 40.0)).criticality(0).time_to_collision)
    assert Situation(at(0.0, 45.0)).criticality(0).time_to_collision == pytest.approx(4.6775)


def test_events_of_a_cut_in_and_of_a_rear_end_collision():
    def frames(moves_other):
        for i in range(100):
            time = i / 20.0
            aside = 3.5 * min(max(2.5 - time, 0.0), 1.5) / 1.5
            yield frame_of(time, (20.0 * time, 0.0 if moves_other else 3.5 - aside, 0.0, 20.0),
                           (15.0 + 20.0 * time, aside if moves_other else 3.5, 0.0, 20.0))

    [event] = safety_of(frames(True)).events()
    assert (event.kind, event.actor) == ('cut_in', 'Other')
    assert 1.0 < event.start < 2.5
    assert event.value == pytest.approx((15.0 - LENGTH) / 20.0, rel=0.01)
    # The actor itself has changed its lane.
    assert safety_of(frames(False)).events() == []
    assert safety_of(frames(True)).events(cut_in_headway=0.2) == []

    def crash():
        for i in range(61):
            time = i / 20.0
            speed = 20.0 if time < 2.0 else max(20.0 - 8.0 * (time - 2.0), 0.0)
            x = 20.0 * min(time, 2.0) + (time > 2.0) * (
                20.0 * (time - 2.0) - 4.0 * (time - 2.0) ** 2)
            yield frame_of(time, (x, 0.0, 0.0, speed), (56.0, 0.0, 0.0, 0.0))

    safety = safety_of(crash())
    events = {event.kind: event for event in safety.events()}
    assert events.keys() == {'hard_braking', 'collision'}
    assert events['hard_braking'].value == pytest.approx(-8.0)
    assert events['collision'].actor == 'Other'
    assert 12.0 < events['collision'].value < 16.5
    assert safety.closest_distance.min() == 0.0
    with pytest.raises(sensor.ConfigError, match='deceleration'):
        safety.events(deceleration=math.nan)


def test_frames_that_say_nothing():
    blank = frame_of(0.5, (math.nan, 0.0, 0.0, 1.0), (50.0, 0.0, 0.0, 1.0))
    unknown = frame_of(1.0, (0.0, 0.0, 0.0, math.nan), (50.0, 0.0, 0.0, 1.0))
    safety = safety_of([
        frame_of(math.nan, (0.0, 0.0, 0.0, 1.0)), frame_of(0.4, tags=()), blank, unknown, unknown,
        frame_of(0.1, (0.0, 0.0, 0.0, 1.0))])
    assert len(safety) == len(safety.lead) == 6
    assert safety.lead == ('', '', '', 'Other', 'Other', '')
    np.testing.assert_array_equal(np.isnan(safety.gap), [True] * 3 + [False] * 2 + [True])
    for name in ('time_headway', 'time_to_collision', 'required_deceleration', 'acceleration'):
        assert np.isnan(getattr(safety, name)).all()
    assert safety.events() == []
    with pytest.raises(sensor.StateError, match='no ego'):
        safety_of([frame_of(0.0, tags=())])


def test_recording_command_and_table_have_the_same_measures(tmp_path, capsys, refusal):
    drive = tmp_path / 'drive.json'
    drive.write_text(json.dumps(json.loads(SAMPLE.read_text())[:30]))
    recording = sensor.open_recording(drive)
    safety = recording.safety()
    assert recording.safety(safety.name).gap.tolist() == pytest.approx(safety.gap.tolist(),
                                                                       nan_ok=True)
    assert len(safety) == len(recording)
    assert not safety.gap.flags.writeable
    with pytest.raises(sensor.StateError, match=r"no actor 'nowhere'.*; there are "):
        recording.safety('nowhere')
    assert main(['inspect', str(drive), '--safety', '--json']) == 0
    printed = json.loads(capsys.readouterr().out)['safety']
    assert printed['actor'] == safety.name
    assert printed['worst']['closest_distance']['value'] == np.nanmin(safety.closest_distance)
    assert main(['inspect', str(drive), '--safety']) == 0
    assert 'closest ' in capsys.readouterr().out
    columns = ['is_ego', 'gap', 'time_headway', 'time_to_collision', 'required_deceleration',
               'closest_distance', 'lead']
    out = tmp_path / 'safety.parquet'
    assert main(['convert', str(drive), str(out), '--columns', ','.join(columns), '-q']) == 0
    table = sensor.read_table(drive, columns=columns)
    assert str(table.to_pylist()) == str(sensor.read_table(out).to_pylist())
    assert 'gap' not in sensor.read_table(drive).column_names
    own = [row for row in table.to_pylist() if row['is_ego']]
    for name in columns[1:-1]:
        np.testing.assert_array_equal([row[name] for row in own], getattr(safety, name))
    assert [row['lead'] or '' for row in own] == list(safety.lead)


def events_of(frames, **limits):
    """Return kind, actor, begin and end of each event."""
    return [(event.kind, event.actor, round(event.start, 2), round(event.end, 2))
            for event in safety_of(frames).events(**limits)]


def kinds_of(frames):
    """Return kind and actor of each event that is no near miss."""
    return [event[:2] for event in events_of(frames, time_to_collision=0.0)]


def test_all_actors_of_a_frame_have_events():
    def driven(*others):
        return [frame_of(i / 20.0, (i / 2.0, 0.0, 0.0, 10.0), *others) for i in range(70)]

    assert [event[:2] for event in events_of(driven(
        (30.0, 1.2, 0.0, 0.0), (30.0, -1.2, 0.0, 0.0)))] == [
        ('collision', 'Other'), ('collision', 'Third')]
    assert sorted(event[:2] for event in events_of(driven(
        (45.0, 0.8, 0.0, 0.0), (45.0, 0.0, 0.0, 0.0), (45.0, -0.8, 0.0, 0.0)))) == [
        ('near_miss', 'Fourth'), ('near_miss', 'Other'), ('near_miss', 'Third')]


def test_towed_actor_is_a_part_of_the_measured_one():
    def driven(apart, tag, n_frames=60):
        for i in range(n_frames):
            frame = frame_of(i / 20.0, (i / 2.0, 0.0, 0.0, 10.0),
                             (i / 2.0 - LENGTH - apart, 0.0, 0.0, 10.0),
                             (i / 2.0 - 40.0, 0.0, 0.0, 10.0))
            yield replace(frame, tags=(frame.tags[0], ('vehicle', tag), frame.tags[2]))

    for apart, tag in ((-0.2, 'truck'), (1.0, 'trailer'), (-0.2, 'trailer')):
        safety = safety_of(driven(apart, tag))
        assert safety.events() == []
        assert 'Other is towed: part of Ego' in safety.assumptions
        assert set(safety.closest_actor) == {'Third'}
    # Others, and one that touches it for less than 10 m, are not.
    assert safety_of(driven(1.0, 'truck')).closest_distance == pytest.approx(1.0)
    assert [event.kind for event in safety_of(driven(-0.2, 'trailer', 20)).events()] == [
        'collision']


def test_lead_vehicle_in_the_bend_of_a_lane_has_a_time_to_collision():
    turned = 35.0 / 40.0
    lead = (40.0 * math.sin(turned), 40.0 * (1.0 - math.cos(turned)), turned, 6.0)
    for lanes, expected in (((), math.nan), (
            ((0, 5, 0, -1, 10.0), (1, 5, 0, -1, 45.0)), (35.0 - LENGTH) / 4.0)):
        found = criticality_of((0.0, 0.0, 0.0, 10.0), lead, lanes=lanes,
                               yaw_rates=(0.25, 0.15, 0.0, 0.0))
        assert found.lead == 1
        assert found.time_to_collision == pytest.approx(expected, nan_ok=True)


def on_road(s, aside, radius):
    """Return x, y and yaw on a road that is straight for 10 m, and then bends to the left."""
    if s < 10.0:
        return s, aside, 0.0
    turned = (s - 10.0) / radius
    return (10.0 + (radius - aside) * math.sin(turned),
            aside + (radius - aside) * (1.0 - math.cos(turned)), turned)


@pytest.mark.parametrize(('radius', 'changing_s'), each_once([150.0, 1e9], [1.5, 3.0, 6.0]))
def test_cut_in_without_lanes(radius, changing_s):
    """In a straight road and in a bend; a car that is followed through it does not cut in."""
    def frames(moves):
        for i in range(150):
            s, share = 1.5 * i, min(max(i / 10.0 - 4.0, 0.0) / changing_s, 1.0)
            aside = 1.75 * (1.0 + math.cos(math.pi * share)) if moves else 0.0
            yield frame_of(i / 10.0, (*on_road(s, 0.0, radius), 15.0),
                           (*on_road(s + 14.0, aside, radius), 15.0),
                           yaw_rates=(15.0 / radius if s > 10.0 else 0.0, math.nan, 0.0, 0.0))

    assert kinds_of(frames(moves=True)) == [('cut_in', 'Other')]
    # Without the change it is one case.
    assert changing_s > 1.5 or kinds_of(frames(moves=False)) == []


@pytest.mark.parametrize('ahead', [13.0, 18.0, 23.0])
def test_ego_that_turns_onto_a_road_is_cut_in_by_nobody(ahead):
    """It comes from the right, and turns left behind a car that drives straight on."""
    def ego(s):
        turned = min(max(s - 30.0, 0.0) / 8.0, math.pi / 2)
        rest = max(s - 30.0 - 4.0 * math.pi, 0.0)
        return (-8.0 * math.cos(turned) + rest, min(s, 30.0) - 38.0 + 8.0 * math.sin(turned),
                math.pi / 2 - turned, 8.0)

    assert kinds_of(frame_of(
        i / 20.0, ego(0.4 * i), (0.4 * i - 43.0 + ahead, 0.0, 0.0, 8.0),
        yaw_rates=(-1.0 if 75 <= i <= 106 else 0.0, 0.0, 0.0, 0.0)) for i in range(200)) == []


def test_lane_tells_who_cuts_in():
    def frames(lane_of_other, lane_of_third):
        for i in range(100):
            is_late = int(i >= 60)
            lanes = [(0, 5, 0, -1, float(i)), (1, 5, 0, lane_of_other[is_late], 15.0 + i),
                     (2, 5, 0, lane_of_third[is_late], 10.0 + i)]
            yield frame_of(i / 20.0, (i, 0.0, 0.0, 20.0), *(
                (s, -3.5 * (lane + 1.0), 0.0, 20.0) for _, _, _, lane, s in lanes[1:]),
                lanes=lanes)

    assert kinds_of(frames((-2, -1), (-3, -3))) == [('cut_in', 'Other')]
    # Another one between them leaves the lane.
    assert kinds_of(frames((-1, -1), (-1, -2))) == []


def test_unknown_yaw_rate_is_not_zero():
    """The path is that since the last frame; of a single frame there is none."""
    ahead = (50.0 * math.sin(1.0), 50.0 * (1.0 - math.cos(1.0)), 1.0, 10.0)
    straight = (40.0, 0.0, 0.0, 10.0)
    assert criticality_of((0.0, 0.0, 0.0, 10.0), straight, yaw_rates=(math.nan,) * 4).lead == -1
    turned = 0.5 / 50.0
    before = (-50.0 * math.sin(turned), 50.0 * (1.0 - math.cos(turned)), -turned, 10.0)
    safety = safety_of([frame_of(i / 20.0, own, ahead, straight, yaw_rates=(math.nan,) * 4)
                        for i, own in enumerate((before, (0.0, 0.0, 0.0, 10.0)))])
    assert safety.lead == ('', 'Other')


def test_assumed_sizes_are_said_at_the_event():
    frames = [frame_of(i / 20.0, (i / 2.0, 0.0, 0.0, 10.0), (45.0, 0.0, 0.0, 0.0))
              for i in range(70)]
    [event] = safety_of(frames).events()
    assert not event.is_size_assumed
    [event] = safety_of([replace(frame, boxes=Boxes(
        np.zeros(1, np.int64), ('',), frame.boxes.rows[:1])) for frame in frames]).events()
    assert event.is_size_assumed
    assert event.texts[3].endswith(', size assumed')
