"""A real Streamlit server and a real Chromium for the tests in this folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
]
Serve = Callable[..., str]

expect.set_options(timeout=30_000)  # machines are shared


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Playwright's Browser; without one the tests are skipped, in CI they fail."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        complain = pytest.fail if os.environ.get("CI") else pytest.skip
        complain("No Chromium on the path; on Debian: apt-get install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(url, **context_options)` in a browser context of its own."""
    contexts = []

    def open_(url: str | None = None, **options: Any) -> Any:
        options.setdefault("viewport", {"width": 1200, "height": 900})
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        if url:
            page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve(script, *options)` starts a server for a script's path or text and gives its URL."""
    with ExitStack() as servers:

        def start(script: Path | str, *options: str) -> str:
            return servers.enter_context(running_server(script, tmp_path, *options))

        yield start


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the application, on one server for all tests of a module."""
    with running_server(ROOT / "app.py", tmp_path_factory.mktemp("application")) as url:
        yield url


@contextmanager
def running_server(script: Path | str, folder: Path, *options: str) -> Iterator[str]:
    """A Streamlit server for a script's path or text, its log in `folder`; yields its URL."""
    if isinstance(script, str):
        path = folder / "app.py"
        path.write_text(script, encoding="utf-8")
        script = path
    port = _free_port()
    base = next((o.partition("=")[2] for o in options if "baseUrlPath=" in o), "")
    url = f"http://localhost:{port}/" + (f"{base}/" if base else "")
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port"]
    command += [str(port), "--server.headless", "true", *options]
    with (folder / f"server-{port}.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _await_health(f"{url}_stcore/health", process, Path(log.name))
            yield url
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def _await_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"The server did not start:\n{log.read_text()[-2000:]}")
