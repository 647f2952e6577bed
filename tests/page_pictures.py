"""Makes the pictures of the page for the documentation, of a real run: ``python tests/page_pictures.py DIR``.

It runs ``headway lab pbs`` and looks at its page in Chromium.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from devtools import Browser
from PIL import Image

#: Seconds that the laboratory runs before it is looked at, so that there is a past to show.
_PAST = 90.0
#: View, picture, width and height, theme.
PICTURES = (
    ("queue", "queue", 1200, 640, "light"),
    ("gantt", "gantt", 1200, 700, "dark"),
    ("nodes", "nodes", 1000, 520, "light"),
    ("job", "job", 1000, 520, "light"),
)
COLOURS = 160


def small(file: Path) -> None:
    """The same picture with few colours."""
    with Image.open(file) as picture:
        few = picture.convert("RGB").quantize(COLOURS)
    few.save(file, optimize=True)


def take(browser: Browser, folder: Path) -> None:
    for view, name, width, height, theme in PICTURES:
        browser.size(width, height)
        browser.theme(theme)
        word = ""
        if view == "job":
            browser.run("location.hash = '#/queue?status=pending'")
            row = "document.querySelectorAll('#view tbody tr')[3]?.dataset.key"
            browser.wait("document.documentElement.dataset.view === 'queue'")
            word = "/" + browser.wait(row)
        # The page is not loaded anew, so that it remembers what it has seen.
        browser.run(f"location.hash = '#/{view}{word}'")
        browser.wait(f"document.documentElement.dataset.view === '{view}'")
        # Its words follow once its charts stand.
        time.sleep(0.5)
        file = folder / f"page-{name}.png"
        browser.picture(file)
        small(file)
        print(f"{file}: {file.stat().st_size} bytes")


def main(folder: Path) -> None:
    program = [sys.executable, "-c", "from headway.cli import main; main()"]
    lab = subprocess.Popen(
        [*program, "lab", "pbs", "--nodes", "12", "--for", "10m"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert lab.stdout is not None
        found = None
        while found is None:
            line = lab.stdout.readline()
            assert line, "the laboratory has ended"
            found = re.search(r"Page: (\S+)", line)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            browser = Browser(Path(profile))
            try:
                browser.size(1200, 700)
                browser.open(found[1])
                browser.wait("!!document.querySelector('#view tbody tr')")
                browser.run("location.hash = '#/gantt'")
                time.sleep(_PAST)
                take(browser, folder)
            finally:
                browser.close()
    finally:
        lab.terminate()
        lab.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
