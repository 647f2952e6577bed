"""Headless Chromium, driven by the DevTools protocol over a pipe: it needs no driver and no library."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from waiting import HANG

OPTIONS = (  # noqa: SIM905
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe "
    "--enable-precise-memory-info --no-proxy-server"
).split()


def chromium() -> str:
    """The browser; the test is skipped without it, and fails where it must be there."""
    browser = shutil.which("chromium")
    if browser is None:
        reason = "needs Debian's chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return browser


def _pipe() -> tuple[int, int]:
    """Its ends, above the numbers that the browser wants."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """A browser with one page."""

    def __init__(self, profile: Path) -> None:
        to_read, self._write = _pipe()
        self._read, to_write = _pipe()
        program = chromium()
        self._process = os.posix_spawn(
            program,
            [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, to_read, 3),
                (os.POSIX_SPAWN_DUP2, to_write, 4),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self._session = b"", 0, ""
        #: What the page said on its console, errors it did not catch, and requests that were blocked.
        self.complaints: list[str] = []
        #: Addresses that were asked for.
        self.requests: list[str] = []
        pages = [one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        attached = self._call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._read)
        os.close(self._write)

    # -- the protocol ------------------------------------------------------------------------------

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, (method, told["error"])
                return told["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], HANG)
            assert ready, "the browser says nothing"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        told: dict[str, Any] = json.loads(line)
        self._note(told.get("method", ""), told.get("params", {}))
        return told

    def _note(self, method: str, about: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                said = details.get("exception", {}).get("description", details["text"])
                self.complaints.append(f"exception: {said}")
            case "Log.entryAdded":
                entry = about["entry"]
                if entry["source"] in ("security", "javascript", "violation"):
                    self.complaints.append(f"{entry['source']}: {entry['text']}")
            case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning"):
                words = [str(one.get("value", one.get("description"))) for one in about["args"]]
                self.complaints.append(" ".join(words))
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])

    # -- what tests do -----------------------------------------------------------------------------

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        told = self._evaluated(script)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def _evaluated(self, script: str) -> Any:
        return self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)

    def wait(self, script: str) -> Any:
        """Until the expression is true: its value."""
        end = time.monotonic() + HANG
        # Between two documents there is none, and an evaluation is cut off.
        tried = f"(() => {{ try {{ return {script}; }} catch {{ return null; }} }})()"
        while True:
            told = self._evaluated(tried)
            if "exceptionDetails" not in told and (found := told["result"].get("value")):
                return found
            assert time.monotonic() < end, (script, self.run("document.body?.innerText"), self.complaints)
            time.sleep(0.02)

    def open(self, address: str) -> None:
        """The page anew, at this address."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)

    def view(self, address: str, name: str) -> None:
        """One of the page's views, once it has asked for what it shows."""
        self.open(address)
        self.wait(f"document.documentElement.dataset.view === {name!r}")

    def size(self, width: int, height: int, scale: float = 1.0) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
            mobile=False,
        )  # fmt: skip

    def theme(self, name: str) -> None:
        """ "light" or "dark", as the system says."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def press(self, key: str) -> None:
        """A key, by what ``KeyboardEvent.key`` says."""
        text = key if len(key) == 1 else {"Enter": "\r"}.get(key, "")
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}.get(key, 0)
        given = {"key": key, "windowsVirtualKeyCode": code}
        self._call("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **given)

    def write(self, text: str) -> None:
        self._call("Input.insertText", text=text)

    def picture(self, file: Path) -> None:
        """What is on the screen, as PNG."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def busy(self) -> float:
        """Seconds of processor time that the page's thread has taken."""
        self._call("Performance.enable", timeDomain="threadTicks")
        metrics = self._call("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    def memory(self) -> int:
        """Bytes of the page's heap, after a collection."""
        self._call("HeapProfiler.collectGarbage")
        return int(self._call("Runtime.getHeapUsage")["usedSize"])
