#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Coverage-guided fuzzing of input from the network and from files, with atheris.

    pip install atheris && python3 fuzz/fuzz.py decode -runs=400000 CORPUS_FOLDER
    python3 fuzz/fuzz.py framing -runs=300000 CORPUS_FOLDER
    python3 fuzz/fuzz.py trajectory -runs=300000 CORPUS_FOLDER
    python3 fuzz/fuzz.py bag -runs=100000 CORPUS_FOLDER
    python3 fuzz/fuzz.py osi -runs=100000 CORPUS_FOLDER
    python3 fuzz/fuzz.py sqlite -runs=100000 CORPUS_FOLDER
    python3 fuzz/fuzz.py table -runs=100000 CORPUS_FOLDER
    python3 fuzz/fuzz.py zstd -runs=100000 CORPUS_FOLDER

Any exception except StateSensorError is a defect: its input is written to a file ``crash-…``,
which belongs into ``test/data/bad`` together with the correction. ``make test`` runs a short
budget of the same kind without atheris (test/simulators/monodrive/test_fuzz.py).
"""

from contextlib import closing, suppress
from functools import partial
import io
from pathlib import Path
import sys
import tempfile

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=['state_sensor_ros']):
    from state_sensor_ros.errors import DecodeError, StateSensorError
    from state_sensor_ros.files.storage.mcap_salvage import McapSalvage
    from state_sensor_ros.files.storage.storage_file import DEFAULT_LIMITS
    from state_sensor_ros.payloads import decode_packet
    from state_sensor_ros.simulators.monodrive.decoder import Decoder, format_payload
    from state_sensor_ros.simulators.monodrive.source import PacketFramer
    from state_sensor_ros.simulators.monodrive.trajectory import read_payloads
    from state_sensor_ros.simulators.opening import open_any

LIMIT = 1 << 16
# Targets that only read a file.
FILES = {'osi': 'drive.osi', 'sqlite': 'bag.db3', 'table': 'table.parquet',
         'zstd': 'drive.json.zst'}


def fuzz_framing(data: bytes) -> None:
    """Feed any bytes, cut anywhere, to the framer."""
    provider = atheris.FuzzedDataProvider(data)
    framer = PacketFramer(LIMIT)
    try:
        while provider.remaining_bytes():
            piece = provider.ConsumeBytes(provider.ConsumeIntInRange(1, 64))
            while piece:
                room = framer.buffer()
                if not len(room) or len(room) > LIMIT:
                    raise RuntimeError(f'room for {len(room)} bytes')
                n_bytes = min(len(room), len(piece))
                room[:n_bytes] = piece[:n_bytes]
                piece = piece[n_bytes:]
                framer.advance(n_bytes)
        framer.end()
    except StateSensorError:
        pass


DECODER = Decoder()


def fuzz_decode(data: bytes) -> None:
    """Decode any bytes, and format the decoded frames again."""
    try:
        for decoded in DECODER.decode(data):
            format_payload(decoded.frame)
    except StateSensorError:
        pass


def fuzz_trajectory(data: bytes) -> None:
    """Split any bytes into payloads."""
    try:
        for _ in read_payloads(io.BytesIO(data), 'fuzz'):
            pass
    except StateSensorError:
        pass


FOLDER = Path(tempfile.mkdtemp())
BAG = FOLDER / 'bag.mcap'


def read_file(path: Path, data: bytes) -> None:
    """Read any bytes as a recording in the format that the name of the file says."""
    path.write_bytes(data)
    try:
        with closing(open_any(str(path))) as recording:
            for recorded in recording.frames():
                with suppress(DecodeError):
                    decode_packet(recording.decoder, recorded.packet)
    except StateSensorError:
        pass


def fuzz_bag(data: bytes) -> None:
    """Read any bytes as a storage file, and salvage messages from them as from a damaged one."""
    read_file(BAG, data)
    salvage = McapSalvage(BAG, 'fuzz', DEFAULT_LIMITS)
    for _ in salvage.messages():
        pass
    salvage.close()


def main() -> None:
    """Fuzz the target that the first argument names; the other arguments are libFuzzer's."""
    targets = {'framing': fuzz_framing, 'decode': fuzz_decode, 'trajectory': fuzz_trajectory,
               'bag': fuzz_bag, **{name: partial(read_file, FOLDER / file)
                                   for name, file in FILES.items()}}
    if len(sys.argv) < 2 or sys.argv[1] not in targets:
        sys.exit(f'error: usage: found no target; expected one of {", ".join(targets)}')
    target = targets[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == '__main__':
    main()
