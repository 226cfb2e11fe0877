"""The sample news-monitor, played for what it takes in tokens: a director and an executor, or the whole history in each prompt.

``python -m tests.simulate_director`` prints both over 60 runs and draws ``docs/images/director-tokens.svg``; then it plays the
same feed with lists of what was done that are kept short, and counts what is mailed again: nothing, as the engine refuses it.
All of it is the product's own: only the reader runs in this process, and tokens are counted as the sample counts them.
"""

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agentx import Workspace
from agentx.cli.work.samples import load_code
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Assignment, Function, Outcome
from agentx.synthesis.model.port import ModelClient
from tests.agentx.test_judging import Model
from tests.line_plot import Line, line_plot

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ROOT / "docs" / "images" / "director-tokens.svg"
SAMPLE = ROOT / "sample_workspaces" / "news-monitor"
RUNS = 60

SAID = {
    1: "Watch Hacker News and Lobsters for AI news, and mail me the titles of new stories at ines@fjordpost.example. If that "
    "address fails, use ines@quill.example. If there are fewer than 2 new stories, send nothing. Do not send stories about crypto.",
    45: "Also watch r/MachineLearning.",
}
"""What the user says before a run."""

LISTS = {
    "all that was sent": "values(tool=send_email, path=titles[*], runs=0)",
    "sent in the last 20 runs": "values(tool=send_email, path=titles[*], runs=20)",
    "sent in the last 5 runs": "values(tool=send_email, path=titles[*], runs=5)",
    "sent, and shown in the last 20 runs": "values_seen(tool=send_email, path=titles[*], seen_by=fetch_feed, seen=$[*], within=20)",
    "sent, and shown in the last 5 runs": "values_seen(tool=send_email, path=titles[*], seen_by=fetch_feed, seen=$[*], within=5)",
}
"""Fields that say what was done."""

newsroom, reader, compare = (load_code(SAMPLE / f"{name}.py") for name in ("newsroom", "reader", "compare"))


class Played(NamedTuple):
    """What came of some runs: what each took, how many titles were mailed, how many of them again."""

    spent: Sequence[Any]
    mailed: int
    again: int


def play(runs: int = RUNS, model: ModelClient | None = None) -> Played:
    """Play runs of the sample.

    Args:
        runs: So many.
        model: Who directs; without one directives are composed.
    """
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder)
        with Workspace.create(world / "w", title="AI news") as ws:
            for run in range(1, runs + 1):
                if run in SAID:
                    ws.say(SAID[run])
                run_directed(ws.engine, Function("reader", read), newsroom.tools(world, run), model=model)
            spent = list(compare.spent(ws, newsroom.tools(world, 1)))
        titles = [title for mail in newsroom.outbox(world) for title in mail["titles"]]
    return Played(spent, len(titles), len(titles) - len(set(titles)))


def read(assignment: Assignment) -> Outcome:
    """The reader of the sample, in this process."""
    done = reader.work(
        assignment.prompt,
        msgspec.to_builtins(assignment.tools.schemas()),
        lambda tool, arguments: msgspec.to_builtins(assignment.tools.call(tool, arguments)),
        dict(assignment.done),
    )
    return msgspec.convert(done, Outcome)


def directing(field: str) -> Model:
    """A model that always writes one prompt, with a field for what was done."""
    prompt = "Read Hacker News and Lobsters, mail ines@quill.example what is new. Do not send stories about crypto."
    directive = {
        "analysis_summary": "x",
        "strategy": "x",
        "executor_system_prompt": f"{prompt}\n\nDone already:\n{{{{done}}}}",
        "reuse_policy": {"valid_for_runs": 50, "dynamic_fields": {"done": field}},
    }
    return Model(*[directive] * 2)


# --- what is shown ---------------------------------------------------------------------------------------------------


def plot(spent: Sequence[Any]) -> str:
    """Tokens so far over the runs, as SVG: with a director, and with the whole history in each prompt."""
    directed = [0, *itertools.accumulate(run.executor + run.director for run in spent)]
    whole = [0, *itertools.accumulate(run.history for run in spent)]
    asked = [number for number, run in enumerate(spent) if run.director]
    return line_plot(
        f"Tokens of all prompts over {len(spent)} runs, with a director and with the whole history in each prompt",
        f"Tokens over {len(spent)} runs of a monitor of news",
        "In thousands, summed up; a dot where the director was asked",
        [
            Line(
                _thousands(directed), "Director and executor", f"{directed[-1] / 1000:,.0f} thousand", asked
            ),
            Line(_thousands(whole), "Whole history", f"{whole[-1] / 1000:,.0f} thousand"),
        ],
        [(run, f"run {run}") for run in range(10, len(spent) + 1, 10)],
        50,
    )


def _thousands(tokens: Sequence[int]) -> list[tuple[float, float]]:
    return [(float(run), total / 1000) for run, total in enumerate(tokens)]


def main() -> None:
    """Print the tables, and draw the picture."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--image", type=Path, default=IMAGE, help="where the picture goes")
    image = arguments.parse_args().image
    spent = play().spent
    print("| up to run | executor | director | together | whole history | times |\n|---|---|---|---|---|---|")
    for run in (10, 20, 30, 40, 50, 60):
        executor, director, history = (sum(column) for column in zip(*spent[:run], strict=True))
        ratio = history / (executor + director)
        print(
            f"| {run} | {executor:,} | {director:,} | {executor + director:,} | {history:,} | {ratio:.1f} |"
        )
    print(f"\nThe last prompt: {spent[-1].executor:,} tokens, with the whole history {spent[-1].history:,}.")
    image.write_text(plot(spent), "utf-8")
    print("\n| in the prompt | mailed | again | tokens of the last prompt |\n|---|---|---|---|")
    for name, field in LISTS.items():
        played = play(model=directing(field))
        print(f"| {name} | {played.mailed} | {played.again} | {played.spent[-1].executor:,} |", flush=True)


if __name__ == "__main__":
    main()
