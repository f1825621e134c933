# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Which source, and which decoder of what it sends, the settings ask for.

May know: every source by name. Must not know: what becomes of the packets. Each is imported where
it is asked for, so that a program starts without the libraries of the others.
"""

from __future__ import annotations

from state_sensor_ros.monodrive.decoder import Decoder
from state_sensor_ros.payloads import PayloadDecoder, Report
from state_sensor_ros.pipeline.source import Source
from state_sensor_ros.recordings.regular_files import check_regular
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import Settings


def open_decoder(settings: Settings) -> PayloadDecoder:
    """
    Make the decoder of what the source will send.

    :raises StateSensorError: when that is a recording and it cannot be opened.
    """
    units = Units(settings.obb_extents, settings.road_s_unit)
    if settings.source == 'file':
        # Opening a pipe would hold up the thread that answers the life cycle.
        check_regular(settings.trajectory_file)
        from state_sensor_ros.recordings.opening import opened
        with opened(settings.trajectory_file, units,
                    max_bag_bytes=settings.max_bag_bytes) as recording:
            return recording.decoder
    if settings.source == 'carla':
        from state_sensor_ros.carla.decode import CarlaDecoder
        return CarlaDecoder()
    return Decoder(units)


def open_source(settings: Settings, report: Report) -> Source:
    """
    Make the source that ``settings`` ask for.

    :param report: called with a kind and a line about what went wrong with a control port.
    :raises StateSensorError: when it cannot be opened at all.
    """
    # Each source is imported where it is asked for: the node starts in a second.
    if settings.source == 'file':
        check_regular(settings.trajectory_file)
        from state_sensor_ros.recordings.player import FileSource
        return FileSource(settings.trajectory_file, rate=settings.rate, loop=settings.loop,
                          units=Units(settings.obb_extents, settings.road_s_unit),
                          max_bag_bytes=settings.max_bag_bytes)
    if settings.source == 'carla':
        from state_sensor_ros.carla.live import CarlaSource
        return CarlaSource(settings, report)
    if settings.control_port:
        from state_sensor_ros.monodrive.configured_source import ConductedSource
        return ConductedSource(settings, report)
    from state_sensor_ros.connections.tcp import TcpSource
    return TcpSource(settings.host, settings.port, reconnect_min=settings.reconnect_min,
                     reconnect_max=settings.reconnect_max, stale_after=settings.stale_after,
                     max_frame_bytes=settings.max_frame_bytes)
