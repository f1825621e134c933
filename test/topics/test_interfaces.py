# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The field lists of other packages' messages have the hashes of the originals.

The hashes were computed from the definitions of autoware_msgs 1.12.0, vision_msgs 4.1.1 and
astuff_sensor_msgs 4.0.0.
"""

import pytest

from state_sensor_ros.cdr.definitions import foreign_texts
from state_sensor_ros.files.bags.bag_topics import type_hash

HASHES = {
    'autoware_perception_msgs/msg/DetectedObject':
        'RIHS01_395e8cae03c45c86ddb3263f9db58f5a1364bdabdcec56c24c817a372f7d566f',
    'autoware_perception_msgs/msg/DetectedObjectKinematics':
        'RIHS01_a01b4e06aa855e7a501b1af1e7c6a9eddb70e728e8f1195372ff5801cae1c9eb',
    'autoware_perception_msgs/msg/DetectedObjects':
        'RIHS01_2facd6b15786cbd1f720cdd23d22e6d60d2e7e83b8dff8fd401330e24edb187b',
    'autoware_perception_msgs/msg/ObjectClassification':
        'RIHS01_38131fef2df46486c20c12c238faf778328309f4c3e9daa6ffd621732e48dd19',
    'autoware_perception_msgs/msg/PredictedObject':
        'RIHS01_07a517a2ed3cfcc961768dbbe769091566e8415177c3e3526a83fb392bcd3717',
    'autoware_perception_msgs/msg/PredictedObjectKinematics':
        'RIHS01_a7c128b84bbb8de1f927c8475930a99681b67832fe947aa5cb1ac6c5b3e6a80b',
    'autoware_perception_msgs/msg/PredictedObjects':
        'RIHS01_b63151309c3323bb6e3f09c54b3358aa53a8e66937a1cde15c5d5ede1ef80a08',
    'autoware_perception_msgs/msg/PredictedPath':
        'RIHS01_d7e3250f12551fcc92777897e1ae11d71f355f770b993189eb2053f10531ccd2',
    'autoware_perception_msgs/msg/PredictedTrafficLightState':
        'RIHS01_2681f28132320e5fba12197070f0f06a956f5a991823034eb5b1bf298243e4be',
    'autoware_perception_msgs/msg/Shape':
        'RIHS01_1a32ac3073c17e4822d39b7f4c263eb1c4a2bacbf707d6db96e77e867063562b',
    'autoware_perception_msgs/msg/TrackedObject':
        'RIHS01_3feae2f15953814466d9c0b88485f423d18d94c351877d8fd1645270222c3526',
    'autoware_perception_msgs/msg/TrackedObjectKinematics':
        'RIHS01_9bcc5af91f7802926c091b89fea44d29f8ce04cb34bd62b98844afab21e49ec7',
    'autoware_perception_msgs/msg/TrackedObjects':
        'RIHS01_3559bd4e62ce8a4d96e32720c02bbe656cc090bb2b3f3f91f52a7c3ab095417a',
    'autoware_perception_msgs/msg/TrafficLightElement':
        'RIHS01_825dec7c3da93f4cb3653006dbeef30f7d1ca92f1d1091e01e79d7d6b84086e9',
    'autoware_perception_msgs/msg/TrafficLightGroup':
        'RIHS01_39af6118b864b40141456dd74caefe615739b465e136ef0b806d0b50329347cb',
    'autoware_perception_msgs/msg/TrafficLightGroupArray':
        'RIHS01_6f6bf892681a43836041dabdac5e95dc3125f1f785d7455c77d09a8b4645fc90',
    'autoware_vehicle_msgs/msg/ControlModeReport':
        'RIHS01_968feaa6441be3c3b161f2eb65972a4b15394d0a7ddc4664318551280d1ff222',
    'autoware_vehicle_msgs/msg/GearReport':
        'RIHS01_4d14bc3f186c1a6af6a732bb5ebd540cdd742a56770012f4c3cb9e762de8f391',
    'autoware_vehicle_msgs/msg/HazardLightsReport':
        'RIHS01_01ce3b4293a5c2799fd7483b2d62a790e26fe8f2b5d60e48149163475685f28a',
    'autoware_vehicle_msgs/msg/SteeringReport':
        'RIHS01_aa3acc9ca95ebc4daf9dec0ecf87911ad9c196392857c3026bfead589db65a94',
    'autoware_vehicle_msgs/msg/TurnIndicatorsReport':
        'RIHS01_c05a54cd244f1c9d683613b11c87a5b3ef816eed7a5f207368301221731a0964',
    'autoware_vehicle_msgs/msg/VelocityReport':
        'RIHS01_9052adda949c32f4a98500abc1fb5bd23f2560e321eebdfbb25318d6108d4ce4',
    'derived_object_msgs/msg/Object':
        'RIHS01_e1f0a53586534c782bbb1f46627230ba2e03135a3623c0f6e32ba7f67db35478',
    'derived_object_msgs/msg/ObjectArray':
        'RIHS01_90aaca381d0f1793679b5397bd2cd37a9e83cd980af5f8abb516d7b7da3b3285',
    'vision_msgs/msg/BoundingBox3D':
        'RIHS01_bbb73a65c163d7f9bb29009c7bde9f7faa576bd2d23299c4511d19230dab4698',
    'vision_msgs/msg/Detection3D':
        'RIHS01_ddd703be132ab0b69d33121f1bb034132bfbb3b0ac5f9fb1516005ba1c8a265b',
    'vision_msgs/msg/Detection3DArray':
        'RIHS01_793f5eab9595ac1c0da07873cc859db42eae51f0ee76056db8562515d830e018',
    'vision_msgs/msg/LabelInfo':
        'RIHS01_3d37df4015cdf660cc851c51897f2acd957e1ca6205ba0a99aebffb9406b0783',
    'vision_msgs/msg/ObjectHypothesis':
        'RIHS01_51da43cec11c01957a64d1e05a24acd18aae7745ec30b74348ad5f6d634f7f90',
    'vision_msgs/msg/ObjectHypothesisWithPose':
        'RIHS01_41c12344c0396c48b81df12467c192d99b2a0eb1463c5c37194e4223251c80bc',
    'vision_msgs/msg/VisionClass':
        'RIHS01_1e4a11f0fed50b5623cb8ff26ca0e37952a48a9c074d16f804b44e9164c2037a',
}


@pytest.mark.parametrize('type_name', HASHES)
def test_hash_is_that_of_the_original(type_name):
    assert type_hash(type_name) == HASHES[type_name]


def test_every_field_list_has_a_hash():
    assert foreign_texts().keys() == HASHES.keys()
