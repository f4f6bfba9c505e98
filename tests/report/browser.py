"""A headless browser for tests: Chromium, spoken to in its DevTools protocol through a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE: Final = 60.0
"""Seconds after which an answer is given up."""


def find_browser() -> str | None:
    """Returns the path of a browser: `$CHROMIUM`, or what is called like one; None where there is none."""
    return os.environ.get("CHROMIUM") or next((p for n in NAMES if (p := shutil.which(n))), None)


class Browser:
    """A page in a browser that runs; `problems` are what its console complained of, `requests` what it fetched."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result; raises `RuntimeError` where the browser refuses."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                break
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def open(
        self, path: Path, width: int = 1280, height: int = 900, *, touch: bool = False, dark: bool = False
    ) -> None:
        """Opens a file in a window of this size and waits until its scripts have run."""
        self.problems, self.requests = [], []
        self.resize(width, height, touch=touch)
        colours = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=colours)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until(f"document.readyState == 'complete' && location.href == {json.dumps(path.resolve().as_uri())}")

    def resize(self, width: int, height: int, *, touch: bool = False) -> None:
        """Gives the window another size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)

    def run(self, code: str) -> Any:
        """Returns the value of an expression in the page, awaited; raises `RuntimeError` where that fails."""
        made = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in made:
            raise RuntimeError(str(made["exceptionDetails"].get("exception", made["exceptionDetails"])))
        return made["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits until a condition holds in the page; raises `TimeoutError` where it does not come."""
        end = monotonic() + PATIENCE
        while not self.run(condition):
            if monotonic() > end:
                raise TimeoutError(f"{condition} does not come true")
            self.frame()

    def frame(self) -> None:
        """Waits until what has changed is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def middle(self, selector: str) -> tuple[float, float]:
        """Returns the middle of the first element of *selector* in the window, scrolled into sight."""
        script = (
            "(selector => { const e = document.querySelector(selector);"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })"
        )
        found = self.run(f"{script}({json.dumps(selector)})")
        return float(found[0]), float(found[1])

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        """Sends one event of the mouse: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        """Clicks on the middle of the first element of *selector*."""
        x, y = self.middle(selector)
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def key(self, key: str) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Writes what is seen, or the *whole* page, as a PNG file."""
        self.frame()
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(made["data"]))

    def _receive(self) -> dict[str, Any]:
        end = monotonic() + PATIENCE
        while b"\0" not in self._pending:
            if not select([self._read], [], [], max(0.0, end - monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._pending += more
        text, _, self._pending = self._pending.partition(b"\0")
        return dict(json.loads(text))

    def _note(self, event: dict[str, Any]) -> None:
        given = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.problems.append(str(details.get("exception", {}).get("description", details["text"])))
        elif event.get("method") == "Log.entryAdded":
            self.problems.append(str(given["entry"]["text"]))
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(str(given["request"]["url"]))


@contextmanager
def browser(path: str, folder: Path) -> Iterator[Browser]:
    """Starts the browser at *path*, which keeps what it likes in *folder*, and ends it."""
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()

    def connect() -> (
        None
    ):  # the protocol is on the descriptors 3 and 4; first out of their way, for either may be one of them
        a, b = os.dup2(to_browser, 200), os.dup2(from_browser, 201)
        os.dup2(a, 3)
        os.dup2(b, 4)

    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
        "--disable-background-networking",
        "--disable-component-update",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
    ]
    process = subprocess.Popen(
        [path, *options, "about:blank"],
        preexec_fn=connect,  # noqa: PLW1509 (it only duplicates descriptors)
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(from_us, to_us)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        os.close(from_us)
        os.close(to_us)
