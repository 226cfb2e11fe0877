"""Draw the pictures of docs/inspector.md: a real Chromium looks at a workspace that the real engine made.

    python -m tests.draw_inspector

It needs what the browser tests need (Playwright and a Chromium), and Pillow, which matplotlib brings.
"""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from PIL import Image

from tests.agentx.inspector.browser import fleet_story
from tests.agentx.inspector.browser.conftest import (
    NARROW,
    WIDE,
    Watched,
    address,
    launched,
    runtime,
    settings_of,
)
from tests.agentx.inspector.browser.story import build

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "images"
MOST_BYTES = 150_000
"""Maximum size of a picture; the tour may have ten times as many."""

TOUR_WIDTH, FRAME_MS = 1_080, 2_200


def views(page):
    """The pictures by name: the address of a view, and what is done there before it is taken."""
    found = {
        "timeline": ("timeline", None),
        "event": (f"event/{seq_of(page, 'Create index.md')}", None),
        "context": ("context", page.locator("summary").first.click),
        "compare": ("context?at=100&with=300", None),
        "search": ("search?q=fable", None),
        "memory": ("memory", None),
        "item": ("memory/r-15", None),
        "candidates": ("candidates", None),
        "problems": ("problems", None),
        "flows": ("flows", None),
        "runs": ("runs", None),
        "pipelines": ("pipelines", None),
        "cognition": ("cognition", None),
    }
    menu = {
        link.split("/")[2]
        for link in page.evaluate("[...document.querySelectorAll('.menu a')].map(link => link.hash)")
    }
    return {
        name: one for name, one in found.items() if one[0].split("?")[0].split("/")[0] in menu | {"event"}
    }


def seq_of(page, text):
    """The number of the newest event of the timeline whose row has a text."""
    row = page.locator("[data-seq]", has_text=text).first
    row.wait_for()
    return row.get_attribute("data-seq")


def saved(name, png):
    """Save a picture, with fewer colours if it is too large otherwise, and return it."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (0, 256, 128, 64):
        out = io.BytesIO()
        drawn = (
            picture.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            if colours
            else picture
        )
        drawn.save(out, "PNG", optimize=True)
        if out.tell() <= MOST_BYTES:
            break
    (PICTURES / f"inspector-{name}.png").write_bytes(out.getvalue())
    return picture


def draw(browser, url):
    """Take all pictures."""
    frames = []
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce", timezone_id="UTC")
    looking = Watched(context, url)
    page = looking.page
    looking.settle()
    for name, (path, act) in views(page).items():
        dark = name in {"compare", "cognition"}
        page.emulate_media(color_scheme="dark" if dark else "light")
        looking.go(path)
        page.wait_for_timeout(600)
        if act:
            act()
        picture = saved(name, page.screenshot())
        frames.append(
            picture.resize(
                (TOUR_WIDTH, picture.height * TOUR_WIDTH // picture.width), Image.Resampling.LANCZOS
            )
        )
    looking.check()
    context.close()
    small = []
    for path, scheme in (("timeline", "light"), ("context", "dark"), ("event", "light")):
        context = browser.new_context(
            viewport=NARROW, reduced_motion="reduce", timezone_id="UTC", color_scheme=scheme
        )
        looking = Watched(context, url)
        looking.settle()
        looking.go(f"event/{seq_of(looking.page, 'Create index.md')}" if path == "event" else path)
        looking.page.wait_for_timeout(600)
        small.append(Image.open(io.BytesIO(looking.page.screenshot())).convert("RGB"))
        context.close()
    beside = Image.new(
        "RGB", (sum(one.width for one in small) + 40 * (len(small) - 1), small[0].height), "white"
    )
    for number, one in enumerate(small):
        beside.paste(one, (number * (one.width + 40), 0))
    out = io.BytesIO()
    beside.save(out, "PNG")
    saved("narrow", out.getvalue())
    frames[0].save(
        PICTURES / "inspector-tour.webp", save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, quality=80, method=6
    )  # fmt: skip


def draw_fleet(browser: Any, place: Path) -> None:
    """Take the picture of a fleet, whose queue has made-up rows."""
    place.mkdir()
    environ = {
        **os.environ,
        "AGENTX_RUNTIME_DIR": f"{place}/rt",
        "AGENTX_CACHE_DIR": f"{place}/no-models",
        "AGENTX_STATE_DIR": f"{place}/state",
    }
    with ThreadPoolExecutor(1) as apart:  # from the loop of Playwright, in which DBOS registers no queue
        apart.submit(
            fleet_story.build, settings_of(environ), place, remote="/srv/fleet/{workspace}.git"
        ).result()
    words = [sys.executable, "-P", "-m", "agentx", "inspect", "--fleet", "--no-open", "--json"]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as process:
        said = ""
        while "}" not in said:
            said += process.stdout.readline()
        size = {"width": WIDE["width"], "height": 1_300}
        context = browser.new_context(viewport=size, reduced_motion="reduce", timezone_id="UTC")
        looking = Watched(context, json.loads(said)["url"])
        looking.page.wait_for_selector(".tiles")
        looking.page.wait_for_timeout(600)
        saved("fleet", looking.page.screenshot())
        looking.check()
        context.close()
        process.send_signal(signal.SIGINT)


def main() -> None:
    """Make the workspace, serve it, and draw; with `--fleet` the fleet alone."""
    place = Path(tempfile.mkdtemp(prefix="agentx-", dir="/tmp"))
    try:
        with runtime() as environ, launched() as browser:
            draw_fleet(browser, place / "fleet")
            if "--fleet" not in sys.argv:
                root = build(place / "fables", settings_of(environ))
                draw(browser, address(environ, root))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for picture in sorted(PICTURES.glob("inspector-*")):
        print(f"{picture.name}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
