# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor evaluate`."""

from __future__ import annotations

import argparse

from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.commands.arguments.shared import (
    above_zero,
    add_bag_limit,
    add_batch_options,
    add_ego_tag,
    add_quiet,
    add_tags,
    number,
)

_EPILOG = """Also: --k --objects-topic --ego-tf --pool --iou-bev --iou-3d --ignore-areas (guide)

examples:
  state_sensor evaluate drive.json stack_bag
  state_sensor evaluate truth_bag 'stacks/*' --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('truth', metavar='TRUTH',
                        help='recording, or a bag of TrackedObjects; - is standard input')
    parser.add_argument('stack', metavar='STACK', nargs='+', help='bags with topics of the '
                        'stack; also folders or globs')
    parser.add_argument('--topic', action='append', default=[], metavar='NAME',
                        help='topic to evaluate; repeatable (default: one, and odometry)')
    parser.add_argument('--objects-topic', default='', metavar='PATTERN',
                        help=argparse.SUPPRESS)
    parser.add_argument('--ego-tf', action='store_true',
                        help=argparse.SUPPRESS)
    parser.add_argument('--truth-topic', default='', metavar='NAME',
                        help='topic of the ground truth if TRUTH is a bag with several')
    parser.add_argument('--at', choices=('stamp', 'received'), default='stamp',
                        help='use ground truth at the stamps (default) or times of receipt')
    parser.add_argument('--definition', choices=('plain', 'nuscenes'), default='plain',
                        help='errors over matches (default), or over recall with AMOTA, AMOTP')
    parser.add_argument('--align', choices=('none', 'se3', 'sim3'), default='none',
                        help='align the poses of the ego, as in evo (default: none)')
    parser.add_argument('--horizons', type=_horizons, metavar='S,S...', default=[3.0, 5.0, 8.0],
                        help='horizons of predicted paths (default: 3,5,8)')
    parser.add_argument('--k', type=_path_counts, metavar='N,N...', default=[1, 6],
                        help=argparse.SUPPRESS)
    for kind in ('bev', '3d'):
        parser.add_argument(f'--iou-{kind}', type=_shares, metavar='IOU,IOU...', default=[],
                            help=argparse.SUPPRESS)
    parser.add_argument('--range', type=above_zero, metavar='M', default=0.0,
                        help="evaluate objects up to M meters from the ego's origin")
    parser.add_argument('--classes', nargs='+', action='extend', default=[], choices=CLASS_NAMES,
                        metavar='CLASS', help='evaluate these classes only')
    parser.add_argument('--ignore-areas', metavar='FILE',
                        help=argparse.SUPPRESS)
    add_tags(parser)
    parser.add_argument('--start', type=number, metavar='S',
                        help='start S seconds after the first frame of the ground truth')
    parser.add_argument('--end', type=number, metavar='S',
                        help='end S seconds after the first frame of the ground truth')
    parser.add_argument('--rate', type=above_zero, metavar='HZ',
                        help='evaluate at most HZ messages per second')
    add_ego_tag(parser)
    parser.add_argument('--json', action='store_true', help='print JSON')
    parser.add_argument('--parquet', metavar='OUT', help='write a table: a row for each match')
    parser.add_argument('--html', metavar='OUT',
                        help='write a page with curves and the ten worst moments')
    parser.add_argument('--curves', metavar='OUT',
                        help='write the precision-recall curve of each class (.parquet, .csv)')
    parser.add_argument('--against', metavar='OLD.json',
                        help='compare with the --json output of an earlier run')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    for name, what, path in (('below', 'less', 'detection/map=0.5'),
                             ('above', 'greater', 'detection/mate=0.5')):
        parser.add_argument(f'--fail-{name}', action='append', default=[], type=_bound,
                            metavar='PATH=VALUE',
                            help=f'exit with 1 if a result is {what}, such as {path}')
    parser.add_argument('--pool', action='store_true',
                        help=argparse.SUPPRESS)
    add_quiet(parser, 'print neither progress nor results, except --json')
    add_batch_options(parser)
    add_bag_limit(parser)


def _horizons(text: str) -> list[float]:
    return sorted({above_zero(part) for part in text.split(',')})


def _shares(text: str) -> list[float]:
    shares = sorted({above_zero(part) for part in text.split(',')})
    if shares[-1] > 1.0:
        raise argparse.ArgumentTypeError(f'{shares[-1]:g} is greater than 1')
    return shares


def _path_counts(text: str) -> list[int]:
    counts = {number(part) for part in text.split(',')}
    if not all(count >= 1.0 and count == int(count) for count in counts):
        raise argparse.ArgumentTypeError(f'{text!r} is not N,N... of numbers from 1')
    return sorted(map(int, counts))


def _bound(text: str) -> str:
    path, _, value = text.rpartition('=')
    try:
        if path and float(value) == float(value):
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f'{text!r} is not PATH=VALUE, such as detection/map=0.5')
