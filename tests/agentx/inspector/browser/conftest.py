"""A real Chromium that looks at a real server's page, and tells what a page must not do.

Chromium is the machine's: `AGENTX_TEST_CHROMIUM`, or the first of some names on PATH. Without one, or without Playwright,
these tests are skipped. One browser and one server serve a module: Playwright's loop must not outlive it, since other
tests run loops of their own.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agentx.client.client import Client, ServerUnavailable
from agentx.settings import Settings
from tests.agentx.inspector.browser.story import build
from tests.agentx.server.conftest import WAIT_S, end

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}

WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`));
"""
"""Runs before the page's own scripts."""


def find_chromium():
    """The path of a Chromium; empty if the machine has none."""
    given = os.environ.get("AGENTX_TEST_CHROMIUM", "")
    return given or next(filter(None, map(shutil.which, NAMES)), "")


CHROMIUM = find_chromium()
"""Looked for at import: the tests' own environment is without the settings of AgentX."""


@contextmanager
def launched():
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    # As root it has no sandbox; what it opens is ours alone.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*arguments, "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of a module."""
    pytest.importorskip("playwright", reason="Playwright is not installed (dependency group `dev`)")
    if not CHROMIUM:
        pytest.skip("no Chromium: install it, or set AGENTX_TEST_CHROMIUM to its path")
    with launched() as found:
        yield found


@contextmanager
def runtime():
    """The environment of a running server, in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="agentx-rt-", dir="/tmp") as name:
        environ = {
            **os.environ,
            "AGENTX_NO_SERVER": "",
            "AGENTX_RUNTIME_DIR": f"{name}/rt",
            "AGENTX_CACHE_DIR": f"{name}/no-models",
            "AGENTX_STATE_DIR": f"{name}/state",
        }
        with subprocess.Popen([sys.executable, "-P", "-m", "agentx", "serve"], env=environ) as process:
            for _ in range(int(WAIT_S / 0.05)):
                with suppress(ServerUnavailable), Client.connect(environ, start=False):
                    break
                time.sleep(0.05)
            yield environ
            end(environ)
            process.wait(WAIT_S)


@pytest.fixture(scope="module")
def environ():
    """The environment of the module's server."""
    with runtime() as found:
        yield found


def settings_of(environ):
    """The settings with which a test makes a workspace that the server opens."""
    return Settings(
        environ=environ,
        cache_dir=Path(environ["AGENTX_CACHE_DIR"]),
        state_dir=Path(environ["AGENTX_STATE_DIR"]),
    )


def address(environ, *roots):
    """The address that opens the page for some workspaces, as the command gives it."""
    words = [sys.executable, "-P", "-m", "agentx", "inspect", *map(str, roots), "--no-open", "--json"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["url"]


@pytest.fixture(scope="module")
def story(environ, tmp_path_factory):
    """A workspace with something in every view."""
    return build(tmp_path_factory.mktemp("story") / "fables", settings_of(environ))


class Watched:
    """A page in the browser, with everything that it did and must not do.

    Attributes:
        page: Playwright's page.
        w: The id of the workspace that it shows.
        faults: Errors of the console, exceptions, dialogs, windows, frames, and requests to anybody else.
    """

    def __init__(self, context, url, **watch):
        self.faults = []
        self.url = url
        self.host = urlsplit(url).netloc
        self.context = context
        context.add_init_script(WATCH)
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)  # a loaded machine
        self.page.on(
            "console",
            lambda message: message.type in {"error", "warning"} and self._add("console", message.text),
        )
        self.page.on("pageerror", lambda error: self._add("exception", error))
        self.page.on("dialog", lambda dialog: (self._add("dialog", dialog.message), dialog.dismiss()))
        self.page.on("frameattached", lambda frame: self._add("frame", frame.url))
        self.page.on("download", lambda download: self._add("download", download.url))
        context.on("page", lambda page: self._add("window", page.url))
        context.on("request", self._requested)
        self.page.goto(url)
        self.page.wait_for_selector("h1")
        self.page.wait_for_function("() => location.hash.split('/').length > 2")
        self.w = self.page.evaluate("location.hash.split('/')[1]")

    def _add(self, what, text):
        self.faults.append(f"{what}: {text}")

    def _requested(self, request):
        if urlsplit(request.url).netloc != self.host:
            self._add("request", request.url)

    def go(self, path, title=None):
        """Open a view by its address, and wait until what it asked for is there."""
        self.page.evaluate("path => { location.hash = path }", f"#/{self.w}/{path}")
        if title:
            self.page.wait_for_function(
                "title => document.querySelector('#main h1')?.textContent.startsWith(title)", arg=title
            )
        self.settle()

    def settle(self):
        """Wait until nothing loads any more; what an address changes begins to load within two frames."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))"
        )
        self.page.wait_for_function(
            "() => document.querySelector('#main h1') && !document.querySelector('#main .skeleton, #main [aria-busy=true]')"
        )

    def text(self):
        """What can be read in the view; runs of spaces count as one."""
        return " ".join(self.page.inner_text("#main").split())

    def check(self):
        """Fail if the page did what it must not do."""
        assert self.faults == []
        assert self.page.evaluate("window.__violations") == []
        assert self.page.evaluate(
            "[window.__pwned, document.querySelectorAll('iframe, object, embed, base').length]"
        ) == [None, 0]
        assert self.page.evaluate("'pwned' in Object.prototype || ({}).pwned !== undefined") is False


@pytest.fixture
def watch(browser):
    """Open pages that are checked when the test ends."""
    contexts, opened = [], []

    def open_page(url, size=WIDE, scheme="light"):
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce"))
        opened.append(Watched(contexts[-1], url))
        return opened[-1]

    yield open_page
    for one in opened:
        one.check()
    for context in contexts:
        context.close()
