# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
#
# ROS 2 from PyPI and this package, for machines without a ROS:
#   docker build -t state_sensor_ros .
#   docker run --rm -it --network host state_sensor_ros make demo
FROM python:3.12-slim-bookworm

# The versions of Debian's packages are those of the image's release.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ gcc git make \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 developer

USER 1000
WORKDIR /home/developer/state_sensor_ros
COPY --chown=1000 . .
RUN make setup STACKS=1

ENTRYPOINT ["sh", "-c", ". ./scripts/env.sh && exec \"$@\"", "--"]
CMD ["bash"]
