# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A new topic is one module and one line in a list; the others' messages stay as they are."""

import os
import shutil
from xml.etree import ElementTree

from encode_world import ALL_ON, box_at, boxes_of, definitions, make_frame
from message_store import typestore
import numpy as np
from paths import ROOT
from programs import run_python
import pytest
from rosbags.rosbag2 import Reader

from state_sensor_ros.commands.cli import main
from state_sensor_ros.control.command_inputs import INPUTS
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import CORE, OUTPUTS
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Topic
from state_sensor_ros.topics.topic_list import output_encoders

MODULE = """
from state_sensor_ros.cdr.templates import MessageInstance, Slot, Table
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import message_blocks, TopicEncoder
import numpy as np

N_ACTORS = Table('number of actors', np.int32, 1)


class ActorCountEncoder(TopicEncoder):

    topics = (Topic('~/n_actors', 'std_msgs/msg/Int32'),)

    def set_up(self, settings):
        template = self.message('std_msgs/msg/Int32', {'data': Slot(N_ACTORS, 0)})
        self.count = MessageInstance(template, {})

    def blocks(self, now):
        return message_blocks([self.count], {}, self.topics)

    def numbers(self, now, numbers):
        numbers[N_ACTORS] = np.array(((len(now.usable),),), np.int32)
"""
LINE = "    'actor_count:ActorCountEncoder',\n"
LAST = "    'actors:ActorArrayEncoder',\n"

namespace: dict = {}
exec(MODULE, namespace)
ActorCountEncoder = namespace['ActorCountEncoder']


@pytest.fixture(scope='module')
def copied(tmp_path_factory):
    """Return a folder with a copy of the package that has one module and one line more."""
    folder = tmp_path_factory.mktemp('copy')
    package = folder / 'state_sensor_ros'
    shutil.copytree(ROOT / 'state_sensor_ros', package,
                    ignore=shutil.ignore_patterns('__pycache__'))
    # Where an installation by pip has them.
    for name in ('msg', 'resource'):
        shutil.copytree(ROOT / name, package / 'data' / name)
    (package / 'topics' / 'actor_count.py').write_text(MODULE)
    text = (package / 'topics' / 'topic_list.py').read_text()
    assert text.count(LAST) == 1
    (package / 'topics' / 'topic_list.py').write_text(text.replace(LAST, LAST + LINE))
    return folder


def run(folder, *words):
    return run_python('-m', *words, cwd=folder, env={**os.environ, 'PYTHONPATH': str(folder)})


def messages_of(bag):
    with Reader(bag) as reader:
        return [(connection.topic, connection.msgtype, data)
                for connection, _, data in reader.messages()]


def test_new_topic_is_in_a_bag_and_no_other_message_changes(copied, tmp_path):
    drive, new, old = (str(tmp_path / name) for name in ('a.json', 'new', 'old'))
    assert main(['synth', '-q', drive, '--vehicles', '3', '--frames', '4', '--objects', '1']) == 0
    assert main(['convert', '-q', drive, old, '-p', 'debug_drawing:=true']) == 0
    done = run(copied, 'state_sensor_ros', 'convert', '-q', drive, new, '-p',
               'debug_drawing:=true')
    assert done.returncode == 0, done.stderr
    new, old = messages_of(new), messages_of(old)
    counts = [typestore().deserialize_cdr(data, type_name).data
              for topic, type_name, data in new if topic == '/state_sensor/n_actors']
    assert counts == [4] * 4
    assert [each for each in new if each[0] != '/state_sensor/n_actors'] == old


def test_topic_appended_from_outside_gets_no_deletions_of_markers():
    registry, frames = Registry(), [
        make_frame(('a', 'b'), boxes=boxes_of(box_at(0), box_at(1))),
        make_frame(('a',), boxes=boxes_of(box_at(0)))]
    plain, longer = (Encoder(ALL_ON, definitions(), further=further)
                     for further in ((), (ActorCountEncoder,)))
    for stamp_ns, frame in enumerate([*frames, *frames], 1):
        actor_list = registry.update(frame)
        expected = plain.encode(frame, actor_list, stamp_ns, EVERYTHING)
        *found, (topic, data) = longer.encode(frame, actor_list, stamp_ns, EVERYTHING)
        assert found == expected
        assert topic.name == '~/n_actors'
        assert np.frombuffer(data[4:], '<i4').tolist() == [frame.n_actors]


def test_numbers_that_an_encoder_leaves_out_are_named():
    class Forgetful(ActorCountEncoder):
        numbers = None

    encoder = Encoder(ALL_ON, definitions(), further=[Forgetful])
    frame = make_frame(['car'])
    with pytest.raises(EncodeError, match='table number of actors: found no numbers'):
        encoder.encode(frame, Registry().update(frame), 0, EVERYTHING)


def test_topics_of_the_same_names_take_the_place():
    """Whatever their class: a display gets one message of a topic for a frame."""
    class Renamed(ActorCountEncoder):
        topics = (Topic('~/n', 'std_msgs/msg/Int32'),)

    class Markers(ActorCountEncoder):
        topics = (Topic('~/markers', 'std_msgs/msg/Int32'),)

    class OwnOdometry(ActorCountEncoder):
        topics, kind, type_name = (), 'odometry', 'std_msgs/msg/Int32'

    plain = Encoder(ALL_ON, definitions())
    encoder = Encoder(ALL_ON, definitions(), further=(
        ActorCountEncoder, Renamed, Markers, ActorCountEncoder))
    assert [(topic.name, topic.type_name) for topic in encoder.topics] == [
        *[(topic.name, 'std_msgs/msg/Int32' if topic.name == '~/markers' else topic.type_name)
          for topic in plain.topics],
        ('~/n_actors', 'std_msgs/msg/Int32'), ('~/n', 'std_msgs/msg/Int32')]
    with pytest.raises(EncodeError, match='OwnOdometry: found topics of OdometryEncoder without '
                                          '~/ego/odometry; expected all of them or none'):
        Encoder(ALL_ON, definitions(), further=(OwnOdometry,))


def test_every_output_and_input_declares_the_packages_of_its_messages():
    """Those that are not dependencies of the package itself."""
    manifest = ElementTree.parse(ROOT / 'package.xml').getroot()
    named = {each.text for each in manifest.iter() if each.tag.endswith('depend')}
    for name, topics in (
            ('outputs', {output: [topic for encoder in output_encoders(output)
                                  for topic in encoder.topics] for output in OUTPUTS}),
            ('control_input', {'': (), **{value: each.topics for value, each in INPUTS.items()}})):
        parameter = CORE.find(name)
        assert {*parameter.rule.choices} == {*topics}
        for value, of_value in topics.items():
            packages = {topic.type_name.partition('/')[0] for topic in of_value}
            found = parameter.packages((value,) if parameter.item else value)
            assert set(found) == {(value, package) for package in
                                  packages - named - {'state_sensor_ros'}}
