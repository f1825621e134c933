# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A new topic is one module and one line in a list; the others' messages stay as they are."""

from xml.etree import ElementTree

from encode_world import ALL_ON, box_at, boxes_of, definitions, make_frame
import numpy as np
from paths import ROOT

from state_sensor_ros.control.command_inputs import INPUTS
from state_sensor_ros.naming import Registry
from state_sensor_ros.settings import CORE, OUTPUTS
from state_sensor_ros.topics.encoder import Encoder, output_encoders
from state_sensor_ros.topics.topic import EVERYTHING, Topic

MODULE = """
from state_sensor_ros.cdr.templates import MessageInstance, Slot, Table
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.encoding import MessageBlock, TopicEncoder
import numpy as np

N_ACTORS = Table('number of actors', np.int32, 1)


class ActorCountEncoder(TopicEncoder):

    topics = (Topic('~/n_actors', 'std_msgs/msg/Int32'),)

    def set_up(self, settings):
        template = self.message('std_msgs/msg/Int32', {'data': Slot(N_ACTORS, 0)})
        self.count = MessageInstance(template, {})

    def layout(self, now):
        return MessageBlock([self.count], {}, self.topics)

    def numbers(self, now, numbers):
        numbers[N_ACTORS] = np.array(((len(now.usable),),), np.int32)
"""

namespace: dict = {}
exec(MODULE, namespace)
ActorCountEncoder = namespace['ActorCountEncoder']


def test_topic_appended_from_outside_leaves_the_others_as_they_are():
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


def test_topics_of_the_same_names_take_the_place():
    """Whatever their class: a display gets one message of a topic for a frame."""
    class Renamed(ActorCountEncoder):
        topics = (Topic('~/n', 'std_msgs/msg/Int32'),)

    class Markers(ActorCountEncoder):
        topics = (Topic('~/markers', 'std_msgs/msg/Int32'),)

    plain = Encoder(ALL_ON, definitions())
    encoder = Encoder(ALL_ON, definitions(), further=(
        ActorCountEncoder, Renamed, Markers, ActorCountEncoder))
    assert [(topic.name, topic.type_name) for topic in encoder.topics] == [
        *[(topic.name, 'std_msgs/msg/Int32' if topic.name == '~/markers' else topic.type_name)
          for topic in plain.topics],
        ('~/n_actors', 'std_msgs/msg/Int32'), ('~/n', 'std_msgs/msg/Int32')]


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
