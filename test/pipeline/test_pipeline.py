# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""What the pipeline reports and counts; its messages are tested on the topics."""

from dataclasses import replace

from encode_world import definitions
from message_store import read
import numpy as np
import pytest
from silent_sink import SilentSink

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.pipeline.pipeline import Pipeline
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import DROPPED, DUPLICATE, Fault, LOST, MEMBER
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING


def test_tags_that_select_nothing_are_reported_once():
    reports = []
    pipeline = pipeline_into(SilentSink(NOTHING), Settings(desired_tags=('vehicel',)),
                             report=lambda *report: reports.append(report))
    # A frame without actors, as SUMO begins, says nothing of tags.
    for time_s, names in enumerate(((), ('car',), ('car',))):
        pipeline.process(crowd(time_s, *names, tags=('ego',)), 0)
    [(_, text)] = reports
    assert text == ("desired_tags 'vehicel' and undesired_tags '' select no actor of the first "
                    'frame; there are ego')
    pipeline.reconfigure(Settings(desired_tags=('bus',)))
    pipeline.process(crowd(9, 'car', tags=('ego',)), 0)
    pipeline.reconfigure(Settings(desired_tags=('EGO',)))
    pipeline.process(crowd(10, 'car', tags=('ego',)), 0)
    assert len(reports) == 2


class ListSink(SilentSink):
    """Records the topics of each frame."""

    def __init__(self):
        super().__init__(EVERYTHING)
        self.sent = []

    def publish(self, messages, stamp_ns):
        self.sent.append([topic.name for topic, _ in messages])


def crowd(number, *names, tags=(), **parts):
    """Return the frame of a sample, with some actors at its number as the time, s."""
    return replace(build_frame('v1', float(number), list(names), np.zeros((len(names), 3)),
                               tags=[tags] * len(names)), sample_count=number, **parts)


def pipeline_into(sink, settings=Settings(), encoder=Encoder, **options):  # noqa: B008
    sink.pipeline = Pipeline(settings, lambda _: encoder(settings, definitions()), sink,
                             **{'report': lambda kind, text: None, **options})
    sink.pipeline.begin()
    return sink.pipeline


class FailingEncoder(Encoder):
    """Fails as a defect would, after it has changed its state."""

    def encode(self, frame, actor_list, stamp_ns, subscriptions, **options):
        messages = super().encode(frame, actor_list, stamp_ns, subscriptions, **options)
        if frame.game_time in (2.0, 3.0):
            raise ZeroDivisionError('a defect')
        return messages


def test_pipeline_contains_an_unexpected_exception():
    sink, defects = ListSink(), []
    pipeline = pipeline_into(sink, Settings(debug_drawing=True), FailingEncoder,
                             on_defect=defects.append)
    for number in range(5):
        assert pipeline.process(crowd(number + 1, 'car'), 0, number)
    counters = pipeline.counters
    assert (counters.n_published, counters.n_skipped, counters.n_defects) == (3, 2, 2)
    assert counters.last_error.text == 'internal error: ZeroDivisionError: a defect'
    assert [str(defect) for defect in defects] == ['a defect'] * 2
    # The frames that were not published are not missed; all topics of the next one are there.
    assert pipeline.stamper.n_missed == 0
    assert sink.sent[1] == sink.sent[0]
    assert '~/actors' in sink.sent[1]
    assert '~/actors/car/odometry' in sink.sent[2]


def test_pipeline_counts_a_frame_once_where_it_fails_after_it_was_published(monkeypatch):
    sink, defects = ListSink(), []
    pipeline = pipeline_into(sink, on_defect=defects.append)
    monkeypatch.setattr(pipeline.checks, 'add', None)
    assert pipeline.process(crowd(1, 'car'), 0)
    assert len(sink.sent) == 1
    assert (pipeline.counters.n_published, pipeline.counters.n_skipped) == (1, 0)
    assert [type(defect) for defect in defects] == [TypeError]


def test_pipeline_publishes_nothing_after_it_was_canceled():
    sink = ListSink()
    pipeline = pipeline_into(sink, Settings(debug_drawing=True))
    assert pipeline.process(crowd(1, 'car'), 0)
    pipeline.cancel()
    assert sink.sent[1:] == [['~/markers']]
    assert not pipeline.process(crowd(2, 'car'), 0)
    assert (pipeline.counters.n_published, len(sink.sent)) == (1, 2)
    pipeline.begin()
    assert pipeline.process(crowd(3, 'car'), 0)


def test_pipeline_does_not_miss_what_was_dropped_or_skipped():
    pipeline = pipeline_into(ListSink())
    # Samples 1 to 12 by number: 3 and 4 were dropped, 6 is skipped, 8 never arrived.
    for number, sample in ((0, 1), (1, 2), (4, 5), (6, 7), (7, 9), (8, 10)):
        pipeline.process(crowd(sample, 'car'), 0, number)
    assert pipeline.stamper.n_missed == 1
    # After a pause of the node, what the simulator did meanwhile is not missed either.
    pipeline.begin()
    pipeline.process(crowd(12, 'car'), 0, 9)
    assert pipeline.stamper.n_missed == 1


class Topics(SilentSink):
    """Keeps the messages of one topic; may cancel the pipeline in the middle of a frame."""

    def __init__(self, name, subscriptions):
        super().__init__(subscriptions)
        self._name = name
        self.messages = []
        self.pipeline = None

    def open(self, topics):
        topics = list(topics)
        if any('canceling' in topic.name for topic in topics):
            self.pipeline.cancel()

    def publish(self, messages, stamp_ns):
        self.messages += [data for topic, data in messages if topic.name == self._name]


def test_pipeline_counts_actors_without_topics_of_the_present_frame_only():
    pipeline = pipeline_into(Topics('~/actors', NOTHING), Settings(max_actor_topics=1))
    for number, names, n_without in [(1, 'abc', 2), (2, 'bc', 1), (1, (), 0), (2, 'abcd', 3),
                                     (2, 'xyz', 2), (3, 'd', 0), (1, 'ab', 1), (1, 'ab', 1)]:
        pipeline.process(crowd(number, *names), 0)
        assert pipeline.counters.n_without_topics == n_without, (number, names)


def test_pipeline_sends_delete_all_as_the_last_message_of_a_stream():
    sink = Topics('~/markers', EVERYTHING)
    settings = Settings(debug_drawing=True)
    pipeline = pipeline_into(sink, settings)
    pipeline.process(crowd(1, 'a'), 0)
    n_before = len(sink.messages)
    assert not pipeline.process(crowd(2, 'canceling'), 0)
    assert not pipeline.process(crowd(3, 'b'), 0)
    pipeline.cancel()
    # Two calls of cancel(), and nothing in between.
    arrays = [read(data, 'visualization_msgs/msg/MarkerArray') for data in sink.messages]
    assert [[marker.action for marker in array.markers] for array in arrays[n_before:]] \
        == [[3], [3]]


def test_pipeline_does_not_call_frames_missed_that_a_seek_dropped():
    pipeline = pipeline_into(Topics('~/actors', NOTHING))
    pipeline.process(crowd(1, 'a'), 0, 0)
    pipeline.process(crowd(50, 'a', is_behind_gap=True), 0, 1)
    pipeline.process(crowd(53, 'a'), 0, 2)
    assert pipeline.stamper.n_missed == 2


def test_faults_are_counted_and_reported():
    reports = []
    pipeline = pipeline_into(SilentSink(NOTHING), report=lambda *report: reports.append(report))
    error = DecodeError('frame[3]', 'nothing', 'a name')
    pipeline.note([Fault(LOST, error), Fault(DROPPED, error, 2), Fault(DUPLICATE, error),
                   Fault(MEMBER, error)])
    counters = pipeline.counters
    assert (counters.n_received, counters.n_skipped) == (1, 1)
    assert (counters.n_dropped_actors, counters.n_duplicates) == (2, 1)
    assert counters.last_error.text == str(error)
    assert [kind for kind, _ in reports] == [
        'payload', 'dropped', 'duplicate', 'ignored_member frame[3]']


@pytest.mark.parametrize(('subscriptions', 'expected'), [(NOTHING, False), (EVERYTHING, True)])
def test_details_are_used_by_topics_with_subscribers_and_by_checks(subscriptions, expected):
    pipeline = pipeline_into(SilentSink(subscriptions))
    assert pipeline.details
    pipeline.process(crowd(1, 'a'), 0)
    assert pipeline.details is expected
    pipeline.process(crowd(100, 'a', wheels=None), 0)
    assert pipeline.details


def test_new_subscribers_get_no_frame_that_was_decoded_without_details():
    sink = ListSink()
    pipeline = pipeline_into(sink)
    for number in range(1, 4):
        pipeline.process(crowd(number, 'a', boxes=None), 0)
        assert pipeline.details
    pipeline.process(crowd(4, 'a'), 0)
    assert ['/tf' in names for names in sink.sent] == [False, False, False, True]


def test_pipeline_applies_settings_without_a_frame():
    sink = Topics('~/markers', EVERYTHING)
    on, off = Settings(debug_drawing=True), Settings()
    pipeline = pipeline_into(sink, on)
    pipeline.process(crowd(1, 'a'), 0)
    n_before = len(sink.messages)
    pipeline.reconfigure(off)
    assert len(sink.messages) == n_before
    for _ in range(2):
        pipeline.apply_settings()
    [array] = [read(data, 'visualization_msgs/msg/MarkerArray')
               for data in sink.messages[n_before:]]
    assert [marker.action for marker in array.markers] == [3]
    # The last of several changes counts.
    for settings in (off, on, off, on):
        pipeline.reconfigure(settings)
    pipeline.process(crowd(2, 'a'), 0)
    assert len(sink.messages) == n_before + 2
