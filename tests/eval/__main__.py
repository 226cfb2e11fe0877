"""Score the product's own code against labelled data, beside simple floors: ``python -m tests.eval --data DIR [SECTION …]``.

Each section is a function ``(data, scratch, told) -> figures``: it reads the folders that it needs under ``data``, yields
nothing where they are missing, and says how far it is through ``told``.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.status import Status

from agentx.settings import read_settings
from agentx.synthesis.model.open import open_model
from tests.eval.ablations import ablations
from tests.eval.backends import search
from tests.eval.capture import capture
from tests.eval.checks import logs, tool_runs
from tests.eval.cognition import cognition
from tests.eval.commits import commits
from tests.eval.conversations import beam_recall, locomo
from tests.eval.cosqa import cosqa
from tests.eval.evidence import evidence
from tests.eval.flow_matching import flows
from tests.eval.judged import SECTIONS as JUDGED
from tests.eval.judged import with_model
from tests.eval.labels import labels
from tests.eval.left_out import left_out
from tests.eval.page import page
from tests.eval.preferences import preferences
from tests.eval.refusals import refusals
from tests.eval.results import PAGE, RESULTS, keep, read, tables
from tests.eval.source_files import source_files
from tests.eval.survival import survival
from tests.eval.talks import talks
from tests.figures import Figure, baseline, machine, show

Told = Callable[[str], None]
Section = Callable[[Path, Path, Told], Iterator[Figure]]

SECTIONS: dict[str, Section] = {
    "left_out": left_out,
    "prefeval": preferences,
    "beam": capture,
    "coding_transcripts": labels,
    "refusals": refusals,
    "survival": survival,
    "test_logs": logs,
    "tool_runs": tool_runs,
    "locomo": locomo,
    "beam_recall": beam_recall,
    "evidence": evidence,
    "cognition": cognition,
    "talks": talks,
    "cosqa": cosqa,
    "flows": flows,
    "ablations": ablations,
    "commit_localisation": commits,
    "source_files": source_files,
    "search": search,
}

ONLY_BY_NAME = frozenset({"ablations"})
"""What takes long and compares the product with itself."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make eval", description=__doc__)
    alone = ", ".join(sorted(ONLY_BY_NAME))
    said = f"which of {', '.join(SECTIONS)}; by default all but {alone}, which is run only when it is named"
    parser.add_argument("section", nargs="*", help=said)
    parser.add_argument("--data", type=Path, help="the folder with the labelled data")
    parser.add_argument("--out", type=Path, default=Path("eval.json"), help="where the flat object goes")
    parser.add_argument(
        "--write-docs",
        action="store_true",
        help=f"keep the results in {RESULTS.name} and write the tables of {PAGE.name}; without --data the tables alone",
    )
    parser.add_argument("--model", default="", help="score capture with this model, too: PROVIDER/NAME")
    wanted = parser.parse_args()
    if unknown := [name for name in wanted.section if name not in SECTIONS]:
        parser.error(f"There is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}.")
    if wanted.data is None and not wanted.write_docs:
        parser.error("Give the folder with the labelled data: --data FOLDER.")
    if wanted.data is not None and not wanted.data.is_dir():
        parser.error(f"{wanted.data} is not a folder; give the one that holds beam/, locomo/ and the others.")
    return wanted


def _write_tables() -> None:
    PAGE.write_text(tables(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")


def _tell(status: Status, name: str, text: str) -> None:
    status.update(f"{name}: {text}")


def main() -> None:
    wanted = _arguments()
    if wanted.data is None:
        _write_tables()
        return
    scratch = Path(tempfile.mkdtemp(prefix="agentx-eval-"))
    figures: list[Figure] = []
    broken = []
    settings = read_settings()
    model = (
        open_model(wanted.model, api_base=settings.api_base, api_key=settings.api_key)
        if wanted.model
        else None
    )
    console = Console(stderr=True)
    try:
        for name in wanted.section or [name for name in SECTIONS if name not in ONLY_BY_NAME]:
            start = time.monotonic()
            with console.status(f"{name} …") as status:
                told = partial(_tell, status, name)
                try:
                    made = list(SECTIONS[name](wanted.data, scratch, told))
                    if made and wanted.write_docs:
                        keep(name, made, time.monotonic() - start)
                    figures += made
                    if model and name in JUDGED:
                        figures += with_model(name, model, figures, wanted.data, scratch, told)
                except Exception:
                    traceback.print_exc()
                    broken.append(name)
            console.print(f"{name}  {time.monotonic() - start:.0f} s")
            wanted.out.write_text(
                json.dumps({figure.key: figure.value for figure in figures}, indent=1) + "\n"
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if wanted.write_docs:
        _write_tables()
    shown = wanted.out.with_suffix(".html")
    shown.write_text(page(figures, wanted.data), encoding="utf-8")
    show(figures, machine(), baseline("eval"))
    console.print(f"The figures are in {wanted.out}; with ten messages and what becomes of them, in {shown}.")
    if broken:
        sys.exit(f"make eval: {', '.join(broken)} broke off; what they say stands above.")
    if not figures:
        sys.exit(f"make eval: no folder that is known stands in {wanted.data}.")


if __name__ == "__main__":
    main()
