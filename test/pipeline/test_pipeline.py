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

import json
import math

from encode_world import definitions
from message_store import read
import pytest
from silent_sink import SilentSink

from state_sensor_ros.errors import ConfigError, DecodeError
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive.decoder import Decoder, split_frames
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING


def packet(header, in_json):
    actor = {'name': 'car', 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1], 'tags': ['ego']}
    payload = json.dumps({'frame': [actor], **in_json}).encode()
    return Packet(payload, *header, 1)


@pytest.mark.parametrize(('header', 'in_json', 'is_reported'), [
    ((12.5, 1600000000), {'game_time': 12.5, 'time': 1600000000}, False),
    ((12.5, 1600000000), {'game_time': 12.5 + 2 ** -20, 'time': 1600000001}, False),
    ((12.5, 1600000000), {}, False),
    ((math.nan, 0), {'game_time': 12.5, 'time': 1600000000}, False),
    ((12.5, 1600000000), {'game_time': 12.5 + 2 ** -18, 'time': 1600000000}, True),
    ((12.5, 1600000000), {'game_time': 12.5, 'time': 1600000002}, True),
    ((0.0, 1600000000), {'game_time': 12.5, 'time': 1600000000}, True)])
def test_pipeline_reports_two_clocks_once(header, in_json, is_reported):
    reports = []
    pipeline = pipeline_into(SilentSink(NOTHING), report=lambda *report: reports.append(report))
    for i in range(3):
        later = {key: value + i for key, value in in_json.items()}
        pipeline.process(packet([number + i if number else 0 for number in header], later), 0)
    assert [kind for kind, _ in reports] == ['clocks'] * is_reported
    if is_reported:
        assert pipeline.counters.game_time == in_json['game_time'] + 2
        assert f'game_time {header[0]:g}, time {header[1]}, its JSON' in reports[0][1]


def test_tags_that_select_nothing_are_reported_once():
    reports = []
    pipeline = pipeline_into(SilentSink(NOTHING), Settings(desired_tags=('vehicel',)),
                             report=lambda *report: reports.append(report))
    # A frame without actors, as SUMO begins, says nothing of tags.
    for time_s, frame in enumerate(({'frame': []}, {}, {})):
        pipeline.process(packet((time_s, 0), frame), 0)
    [(_, text)] = reports
    assert text == ("desired_tags 'vehicel' and undesired_tags '' select no actor of the first "
                    'frame; there are ego')
    pipeline.reconfigure(Settings(desired_tags=('bus',)))
    pipeline.process(packet((9.0, 0), {}), 0)
    pipeline.reconfigure(Settings(desired_tags=('EGO',)))
    pipeline.process(packet((10.0, 0), {}), 0)
    assert len(reports) == 2


GOOD = {'frame': [{'name': 'car', 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1]}],
        'game_time': 1.0, 'time': 0}


def text_of(*times):
    return [json.dumps({**GOOD, 'game_time': time}).encode() for time in times]


@pytest.mark.parametrize(('payload', 'n_frames'), [
    (text_of(1)[0], 1), (b' \n' + text_of(1)[0], 1), (b'[]', 1), (b'', 1), (b'[', 1),
    (b'nothing', 1), (b'[' + b','.join(text_of(1, 2, 3)) + b']', 3),
    (b'\xef\xbb\xbf [\n' + b' ,\r\n'.join(text_of(1, 2)) + b'\n] \n', 2),
    (b'[{"a": NaN}, {"b": Infinity}]', 2), (b"[{'a': 1}, {'b': 2}]", 2),
    (b'[' + b','.join([*text_of(1), b'{"a": "\xff"}', *text_of(2)]) + b']', 3),
    # An element that is no object, or no JSON: the decoder refuses the whole payload.
    (b'[1, null, {}]', 1), (b'[[{}, {}], {}]', 1), (b'[{"a": 1}, {"b": }, {"c": 3}]', 1),
    (b'[{"a": ' + b'[' * 5000 + b']' * 5000 + b'}, {}]', 1), (b'[{"a": 1}, {"b": 2}', 1),
    (b'[{"a": 1}] {"b": 2}]', 1)], ids=repr)
def test_payload_is_split_into_its_frames(payload, n_frames):
    frames = split_frames(payload)
    assert len(frames) == n_frames
    if n_frames == 1:
        assert frames == (payload,)
    assert split_frames(bytearray(payload)) == frames


def written(**members):
    """Return a frame as text, with a number and a name that variants replace."""
    actor = {**GOOD['frame'][0], 'name': 'ego_car', 'velocity': [10.0, 0.0, 0.0]}
    return json.dumps({**GOOD, 'frame': [actor], **members}).encode()


@pytest.mark.parametrize('variant', [
    lambda a, b: b'\xef\xbb\xbf[' + a + b',' + b + b']',
    lambda a, b: b' \r\n\t[ \n' + a + b' \n, ' + b + b'\t] \n ',
    lambda a, b: b'\xef\xbb\xbf [' + a.replace(b'10.0', b'NaN') + b' , ' + b + b'] ',
    lambda a, b: b'[' + a.replace(b'"', b"'") + b', ' + b.replace(b'"', b"'") + b']',
    lambda a, b: b'[' + a.replace(b'"', b"'").replace(b'ego_car', b'a[{,') + b','
    + b.replace(b'"', b"'").replace(b'10.0', b'-Infinity') + b']',
    lambda a, b: b'[' + a.replace(b'ego_car', rb'a\"]}[\\') + b',' + b + b']',
    lambda a, b: b'[' + a.replace(b'ego_car', rb'a\"]}[\\').replace(b'10.0', b'NaN') + b','
    + b + b']'])
def test_arrays_in_every_form_that_payloads_may_have(variant):
    first, second = split_frames(variant(written(), written(sample_count=2)))
    assert [decoded.frame.n_actors for text in (first, second)
            for decoded in Decoder().decode(text)] == [1, 1]


@pytest.mark.parametrize('text', [
    b'[]', b'[ ]', b'[', b']', b'[[[', b'[{]', b'[{}', b'[{}]]', b'[{}],{}', b"['{']", b'["',
    b'["]'])
def test_text_that_is_no_array_of_frames_is_one_payload_that_is_refused(text):
    [payload] = split_frames(text)
    with pytest.raises(DecodeError):
        Decoder().decode(payload)


class ListSink(SilentSink):
    """Records the topics of each frame."""

    def __init__(self):
        super().__init__(EVERYTHING)
        self.sent = []

    def publish(self, messages, stamp_ns):
        self.sent.append([topic.name for topic, _ in messages])


def crowd(number, *names):
    """Return the frame of a sample, with some actors at its number as the time, s."""
    actors = [{'name': name, 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1]}
              for name in names]
    payload = {'frame': actors, 'game_time': float(number), 'sample_count': number}
    return Packet(json.dumps(payload).encode(), math.nan, 0, 0)


def pipeline_into(sink, settings=Settings(), encoder=Encoder, **options):  # noqa: B008
    sink.pipeline = Pipeline(
        settings, lambda _: Codec(Decoder(), encoder(settings, definitions())), sink,
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


def test_pipeline_without_a_handler_raises_an_unexpected_exception():
    pipeline = pipeline_into(ListSink(), encoder=FailingEncoder)
    with pytest.raises(ZeroDivisionError):
        pipeline.process(crowd(2, 'car'), 0)
    pipeline.contain(lambda: True)
    with pytest.raises(ZeroDivisionError):
        pipeline.contain(lambda: 1 // 0)


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
    for number, sample in ((0, 1), (1, 2), (4, 5), (5, None), (6, 7), (7, 9), (8, 10)):
        bad = Packet(b'{}', math.nan, 0, 0)
        pipeline.process(crowd(sample, 'car') if sample else bad, 0, number)
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


def test_pipeline_publishes_actors_of_a_frame_that_was_canceled_with_the_next_one():
    sink = Topics('~/actors', NOTHING)
    pipeline = pipeline_into(sink)
    assert pipeline.process(crowd(1, 'a'), 0)
    assert not pipeline.process(crowd(2, 'a', 'canceling'), 0)
    assert len(sink.messages) == 1
    pipeline.begin()
    for number in (3, 4):
        assert pipeline.process(crowd(number, 'a', 'canceling'), 0)
        assert len(sink.messages) == 2
    assert pipeline.counters.n_published == 3


def test_pipeline_publishes_actors_of_a_restart_without_any():
    sink = Topics('~/actors', NOTHING)
    pipeline = pipeline_into(sink)
    for i, (number, names, n_messages) in enumerate([
            (1, (), 1), (2, (), 1), (3, 'ab', 2), (4, 'ab', 2), (1, (), 3), (2, (), 3), (1, (), 4),
            (2, 'a', 5), (3, (), 6)]):
        pipeline.process(crowd(number, *names), 0, i)
        assert len(sink.messages) == n_messages, i


def test_pipeline_counts_actors_without_topics_of_the_present_frame_only():
    pipeline = pipeline_into(Topics('~/actors', NOTHING), Settings(max_actor_topics=1))
    for number, names, n_without in [(1, 'abc', 2), (2, 'bc', 1), (1, (), 0), (2, 'abcd', 3),
                                     (2, 'xyz', 3), (3, 'd', 0), (1, 'ab', 1), (1, 'ab', 1)]:
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
    behind_gap = crowd(50, 'a')
    pipeline.process(Packet(behind_gap.payload, math.nan, 0, 0, is_behind_gap=True), 0, 1)
    pipeline.process(crowd(53, 'a'), 0, 2)
    assert pipeline.stamper.n_missed == 2


def test_pipeline_goes_on_when_no_new_codec_can_be_made():
    """For example when the recording that plays was removed."""
    settings, sink, defects = Settings(), Topics('~/actors', NOTHING), []

    class Failing(Decoder):

        def decode(self, payload, **header):
            if b'"bad"' in payload:
                raise RuntimeError('provoked')
            return super().decode(payload, **header)

    codecs = iter([Codec(Failing(), Encoder(settings, definitions()))])

    def new_codec(_):
        for codec in codecs:
            return codec
        raise ConfigError('drive.json', 'nothing', 'a recording')

    pipeline = Pipeline(settings, new_codec, sink, report=lambda kind, text: None,
                        on_defect=defects.append)
    for number, name in enumerate(['a', 'bad', 'a', 'b']):
        pipeline.process(crowd(number, name), 0, number)
    counters = pipeline.counters
    assert (counters.n_published, counters.n_skipped, counters.n_defects) == (3, 1, 1)
    assert len(defects) == 1
    assert counters.last_defect == 'RuntimeError: provoked'
    # ~/actors once more behind the exception.
    assert len(sink.messages) == 3


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


def test_pipeline_counts_a_defect_while_settings_are_applied(monkeypatch):
    defects = []
    pipeline = pipeline_into(Topics('~/actors', NOTHING), on_defect=defects.append)
    monkeypatch.setattr(pipeline._actor_topics, 'reconfigure', None)
    pipeline.reconfigure(Settings(odometry=False))
    pipeline.apply_settings()
    assert [type(defect) for defect in defects] == [TypeError]
    assert pipeline.counters.n_defects == 1
    assert pipeline.process(crowd(1, 'a'), 0)
    assert pipeline.counters.n_published == 1
