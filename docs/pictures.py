"""Make the pictures of these pages: ``make pictures``, or ``python docs/pictures.py NAME...``.

A picture is a line of :data:`PICTURES`: the commands that make what it shows, and how a browser looks at it.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The command as it is installed beside the interpreter.
HEADWAY = str(Path(sys.executable).with_name("headway"))
#: Seconds until a page that is served has to answer.
PATIENCE = 60.0
_BROWSER = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=5000",
)  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """What is looked at: a file of the working folder, or an address that a command serves meanwhile."""

    page: str
    #: Width and height in pixels.
    size: tuple[int, int]
    #: Command lines that make it, in their order; they run in the working folder.
    commands: tuple[tuple[str, ...], ...] = ()
    #: A command that runs while the picture is made, such as a server of ``page``.
    during: tuple[str, ...] = ()
    dark: bool = False


#: Name of the file in ``docs/images`` -> what it shows.
PICTURES = {
    "report": Picture("demo/report.html", (1300, 1560), ((HEADWAY, "demo", "--out", "demo"),)),
}


def make(picture: Picture, image: Path, folder: Path) -> None:
    """Make one picture; ``folder`` is where its commands work."""
    folder.mkdir(parents=True, exist_ok=True)
    for command in picture.commands:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with _running(picture.during, folder), tempfile.TemporaryDirectory() as profile:
        served = picture.page.startswith(("http://", "https://"))
        address = picture.page if served else (folder / picture.page).resolve().as_uri()
        if served:
            _until_it_answers(address)
        image.parent.mkdir(parents=True, exist_ok=True)
        options = [*_BROWSER, f"--user-data-dir={profile}", f"--screenshot={image.resolve()}"]
        options.append("--window-size={},{}".format(*picture.size))
        if picture.dark:
            # The answer to prefers-color-scheme.
            options.append("--blink-settings=preferredColorScheme=0")
        subprocess.run([_browser(), *options, address], check=True, stderr=subprocess.DEVNULL)


def _browser() -> str:
    found = shutil.which("chromium")
    if found is None:
        raise SystemExit("pictures: expected chromium, found none: apt-get install chromium")
    return found


@contextlib.contextmanager
def _running(command: tuple[str, ...], folder: Path) -> Iterator[None]:
    if not command:
        yield
        return
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


def _until_it_answers(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(address, timeout=PATIENCE).close()
            return
        except (urllib.error.URLError, ConnectionError) as error:
            if time.monotonic() > end:
                raise SystemExit(f"pictures: {address} does not answer: {error}") from error
            time.sleep(0.2)


def main(names: list[str]) -> None:
    if unknown := [name for name in names if name not in PICTURES]:
        raise SystemExit(f"pictures: expected of {', '.join(PICTURES)}, found {', '.join(unknown)}")
    for name in names or PICTURES:
        image = ROOT / "docs" / "images" / f"{name}.png"
        make(PICTURES[name], image, ROOT / "out" / "pictures")
        print(image.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
