# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A resolver that never answers for one host name, for programs that are started with it."""

import os
from pathlib import Path
import shutil
import subprocess
import time

from budgets import AWAIT_S
import pytest

HOST = 'slow.invalid'
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int is_number = hints && (hints->ai_flags & AI_NUMERICHOST);
    if (node && !is_number && !strcmp(node, "slow.invalid")) {
        close(open(getenv("LOOKED_UP"), O_CREAT | O_WRONLY, 0600));
        for (;;)
            pause();
    }
    return ((resolver *)dlsym(RTLD_NEXT, "getaddrinfo"))(node, service, hints, found);
}
"""


class SlowNames:
    """``environment`` for a program, in which a look-up of HOST does not return."""

    def __init__(self, folder: Path):
        compiler = shutil.which('cc') or shutil.which('c++')
        if compiler is None:
            pytest.skip('needs a C compiler')
        source, library = folder / 'resolver.c', folder / 'resolver.so'
        source.write_text(SOURCE)
        subprocess.run([compiler, '-x', 'c', '-shared', '-fPIC', str(source), '-o', str(library),
                        '-ldl'], check=True)
        self._looked_up = folder / 'looked_up'
        self.environment = {'LD_PRELOAD': ':'.join(filter(None, (
            str(library), os.environ.get('LD_PRELOAD')))), 'LOOKED_UP': str(self._looked_up)}

    def wait(self, seconds: float = AWAIT_S) -> None:
        """Wait until a program resolves the name."""
        deadline = time.monotonic() + seconds
        while not self._looked_up.exists():
            assert time.monotonic() < deadline, 'no look-up'
            time.sleep(0.01)
