# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Check the links of a built site that lead to the site itself: files, images and anchors.

Needs no network; links to other sites are not followed.
"""
from html.parser import HTMLParser
from pathlib import Path
import sys
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of one page."""

    def __init__(self, path: Path) -> None:
        """
        Read a page.

        :param path: of the HTML file.
        """
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding='utf-8'))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the element names and what it refers to."""
        self.anchors.update(value for key, value in attrs if key == 'id' and value)
        self.links += [value for key, value in attrs if key in ('href', 'src') and value]


def dead_links(site: Path) -> list[str]:
    """
    Return a line for each link that leads nowhere.

    :param site: folder of the built pages.
    """
    pages = {path: Page(path) for path in sorted(site.rglob('*.html'))}
    return [f'{path.relative_to(site)}: found no {link}; expected it in the site'
            for path, page in pages.items() for link in page.links
            if not _leads_somewhere(link, path, pages)]


def _leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= 'index.html'
    if target not in pages:
        return target.exists()
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors


if __name__ == '__main__':
    found = dead_links(Path(sys.argv[1]).resolve())
    sys.stderr.write(''.join(f'error: {line}\n' for line in found))
    sys.exit(bool(found))
