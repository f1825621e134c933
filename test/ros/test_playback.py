# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node plays a recording: all of it, as fast as possible, also if it was cut."""

import json
from pathlib import Path

from rig import frame, Managed, NodeProcess, statuses

N_FRAMES = 60


def recorded(tmp_path, n=N_FRAMES):
    path = tmp_path / 'drive.json'
    path.write_text(json.dumps([frame(i) for i in range(n)]))
    return str(path)


def test_playback_publishes_all_of_it_unpaced(domain, listener, tmp_path):
    with NodeProcess(domain, source='file', trajectory_file=recorded(tmp_path), rate=0.0,
                     autostart=False) as node:
        frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        managed = Managed(listener)
        # The node has found this reader, and the one before it: no frame of a publisher that it
        # makes from now on is lost.
        listener.until(lambda: diagnostics, what='a report')
        assert managed.request('configure')
        listener.matched('/state_sensor/frame')
        assert managed.request('activate')
        listener.until(lambda: [each for each in statuses(diagnostics)
                                if each.get('frames published') == str(N_FRAMES)], what='the end')
        listener.until(lambda: frames and frames[-1].sample_count == N_FRAMES, what='the last')
        assert node.end()[0] == 0


def test_playback_of_a_recording_that_was_cut_warns_once(domain, listener, tmp_path):
    path = Path(recorded(tmp_path))
    path.write_bytes(path.read_bytes()[:-20])
    with NodeProcess(domain, source='file', trajectory_file=str(path), rate=0.0) as node:
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        listener.until(lambda: [each for each in statuses(diagnostics)
                                if each.get('frames published') == str(N_FRAMES - 1)])
        n_seen = len(diagnostics)
        listener.until(lambda: len(diagnostics) > n_seen + 2, what='more diagnostics')
        last = statuses(diagnostics)[-1]
        assert (last['level'], last['message']) == (0, 'the recording is ended')
        assert 'inside the array' in last['last error']
        assert node.end()[0] == 0
        [line] = [line for line in node.log.splitlines() if 'inside the array' in line]
        assert '[WARN]' in line
        assert f'{N_FRAMES - 1} whole frames; lost: ' in line
        assert '`state_sensor repair`' in line
