"""``agentx pipeline``: what people see of a pipeline before it runs."""

import glob
import json
import re
import shlex
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from agentx.storage.events.types import Draft
from agentx.workspace import Workspace

BOOK = Path(__file__).resolve().parents[3] / "sample_workspaces" / "technical-book" / "book.yaml"


@pytest.fixture
def essays(call, tmp_path):
    assert call("pipeline", "new", tmp_path / "essays").code == 0
    return tmp_path / "essays.yaml"


@pytest.fixture
def words(tmp_path):
    """A model that writes each file of the essays as it is asked for, and in which folder its words lie."""
    folder = tmp_path / "words"
    for number in ("01", "02"):
        essay = f"Sleep {'is good ' * 60}.\n\n## In short\n\nSleep well.\n\n<!-- DRAFT_COMPLETE -->\n"
        texts = {
            f"research/{number}.md": "## Facts\n\nOne.\n\n## Open questions\n\nNone.\n\n<!-- RESEARCH_COMPLETE -->\n",
            f"essays/{number}.md": essay,
            f"reviews/{number}.md": "Verdict: PASS\n\n<!-- REVIEW_COMPLETE -->\n",
            f"notes/{number}.md": f"## Summary\n\nEssay {number} says: sleep.\n\n<!-- NOTES_COMPLETE -->\n",
            "meta/style.md": "- Be brief.\n\n<!-- STYLE_COMPLETE -->\n",
        }
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
    (tmp_path / "model.jsonl").write_text('{"folder": "words"}\n', "utf-8")
    return folder, f"script:{tmp_path / 'model.jsonl'}"


def test_what_is_written_to_begin_with_is_a_pipeline_and_is_never_written_over(call, essays):
    before = essays.read_text("utf-8")
    assert call("pipeline", "matrix", essays, "--json").json["pipeline"] == "essays"
    done = call("pipeline", "new", essays)
    assert (done.code, done.err) == (2, f"agentx: {essays} already exists; choose another name.\n")
    assert essays.read_text("utf-8") == before
    assert call("pipeline", "new", essays.with_name("a b")).code == 2
    assert not essays.with_name("a b.yaml").exists()


def test_the_matrix_says_for_each_role_and_file_what_may_be_done(call, essays):
    lines = call("pipeline", "matrix", essays).out.splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert cells["style"] == ["w", "·", "r", "r", "·", "meta/style.md"]
    assert cells["draft"] == ["·", "×", "w", "r", "r", "essays/{id}.md"]
    assert cells["summaries"] == ["·", "r", "r", "·", "a", "meta/summaries.md"]
    assert [line for line in lines if line in ("static", "append-only", "overwritable")]
    [keeper] = [line for line in lines if "Keeper" in line]
    assert keeper.split("  ")[-1].strip() == "notes, summaries (added to)"
    [role] = [
        one for one in call("pipeline", "matrix", essays, "--json").json["roles"] if one["role"] == "writer"
    ]
    assert (role["files"]["draft"], role["stages"]) == (["writes"], ["write"])
    assert (role["by"], role["agent"]) == (["model"], "general-purpose")


def test_what_a_pipelines_file_says_has_the_same_name_in_json(call, essays):
    file = yaml.safe_load(essays.read_text("utf-8"))
    matrix = call("pipeline", "matrix", essays, "--json").json
    assert {one["file"]: one["class"] for one in matrix["files"]} == {
        name: one.get("class", "overwritable") for name, one in file["files"].items()
    }
    accesses = {access for role in matrix["roles"] for given in role["files"].values() for access in given}
    assert accesses == {"reads", "writes", "appends", "does_not_read"}
    assert accesses <= {key for role in file["roles"].values() for key in role}


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_matrix_keeps_to_the_width_that_there_is(call, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    _, _, *lines = call("pipeline", "matrix", BOOK).out.splitlines()
    assert all(len(line) <= columns for line in lines)
    heads = [line.split()[1:] for line in lines if line.startswith("file ")]
    numbers = [int(word) for head in heads for word in head if word.isdecimal()]
    roles = call("pipeline", "matrix", BOOK, "--json").json["roles"]
    assert numbers == list(range(1, len(roles) + 1))


def test_the_plan_says_what_each_dispatch_takes_and_what_all_of_it_costs(call, essays):
    essays.write_text(essays.read_text("utf-8") + "price: {prompt: 2, output: 10}\n", "utf-8")
    outlook = call("pipeline", "plan", essays, "--json").json["outlook"]
    assert [one["step"] for one in outlook["planned"] if one["stage"] == "write"] == [
        "write[01]",
        "write[02]",
    ]
    least, most = outlook["least"], outlook["most"]
    assert (least["dispatches"], most["dispatches"]) == (9, 17)  # a loop of two stages, at most three rounds
    for takes in (least, most):
        cost = (2 * takes["prompt_tokens"] + 10 * takes["output_tokens"]) / 1_000_000
        assert takes["cost_usd"] == pytest.approx(cost)
    lines = call("pipeline", "plan", essays).out.splitlines()
    [write] = [line.split() for line in lines if line.startswith("write ")]
    assert write[:2] == ["write", "2–6"]
    assert write[-1].endswith("%")
    assert "agents sent  9 to 17" in lines
    assert any(line.startswith("cost         about $0.") for line in lines)
    assert "it stops at  60 dispatches" in lines


def test_the_budget_of_one_dispatch_is_a_sum(call, essays):
    done = call("pipeline", "plan", essays, "--step", "write[02]")
    rows = dict(re.findall(r"^(\S.*?) {2,}(~?[\d,]+)", done.out, re.MULTILINE))
    numbers = {name: int(told.strip("~").replace(",", "")) for name, told in rows.items()}
    assert rows["research/02.md"].startswith("~")
    files = sum(number for name, number in numbers.items() if name.endswith(".md"))
    assert numbers["Total reads"] == files
    rest = numbers["Prompt"] + numbers["System prompt"] + numbers["Output reservation"]
    assert numbers["Total"] == files + rest
    done = call("pipeline", "plan", essays, "--step", "write[09]")
    assert done.code == 2
    assert "did you mean write[0" in done.err


def test_what_does_not_fit_is_told_before_anything_runs(call, essays):
    text = essays.read_text("utf-8").replace(
        "items:", "agents: {explore: {window: 2300, output: 200}}\nitems:", 1
    )
    essays.write_text(text, "utf-8")
    done = call("pipeline", "plan", essays)
    assert done.code == 1
    assert "research[02]  ✗ The agent's files need at least" in done.out


def test_a_source_file_that_is_not_there_is_told_before_anything_runs(call, essays, tmp_path):
    (tmp_path / "code").mkdir()
    text = essays.read_text("utf-8").replace(
        "files:\n", "sources: {code: CODE}\nfiles:\n  guide: {path: guide.md, source: code}\n"
    )
    text = text.replace("{file: research, purpose: the material}", "{file: guide}").replace(
        "CODE", str(tmp_path / "code")
    )
    essays.write_text(text, "utf-8")
    done = call("pipeline", "plan", essays)
    assert done.code == 1
    assert "✗ Role writer (stage write[01]) reads guide: no file guide.md in the source code" in done.out


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("pattern", "count"),
    [("in/{{ essay.id }}.md", 2), ("in/{{ essay.id }}.md", 8), ("in/*.md", 2), ("brief.md", 1)],
)
def test_what_is_missing_is_added_by_the_command_that_is_told(
    call, root, essays, monkeypatch, count, inside, pattern
):
    """From inside the workspace and from outside, whether the files lie beside the pipeline's or nowhere."""
    folder = root if inside else essays.parent
    numbers = [f"{number:02}" for number in range(1, count + 1)]
    items = [{"id": number, "title": number} for number in numbers]
    text = re.sub(
        r"(?s)items:.*?\nfiles:\n",
        f"items: {{essay: {json.dumps(items)}}}\nfiles:\n  brief: {{path: '{pattern}'}}\n",
        essays.read_text("utf-8"),
    )
    path = folder / "told.yaml"
    path.write_text(text.replace("reads:", "reads:\n      - {file: brief}", 1), "utf-8")
    wanted = [pattern] if pattern == "brief.md" else [f"in/{number}.md" for number in numbers]
    unfound = "; ".join(call("pipeline", "plan", path, "-C", root, "--json").json["outlook"]["missing"])
    assert f"agentx -C {root} add FOLDER/" in unfound
    for name in wanted:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("Write of sleep.\n", "utf-8")
    if inside:
        monkeypatch.chdir(root)
    (told,) = call("pipeline", "plan", path, "-C", root, "--json").json["outlook"]["missing"]
    command = re.search(r"`(.*?)`", told)[1]
    if command.startswith("agentx"):
        words = [one for word in shlex.split(command)[1:] for one in sorted(glob.glob(word)) or [word]]
        assert call(*words).code == 0
    else:
        subprocess.run(["bash", "-c", command], check=True)
    assert all((root / "artifacts" / name).is_file() for name in wanted)
    assert call("pipeline", "plan", path, "-C", root).code == 0


def test_a_program_that_is_not_there_is_told_before_anything_runs(call, root, tmp_path):
    path = tmp_path / "p.yaml"
    book = "pipeline: p\nfiles: {a: {path: a.md}}\nroles: {x: {by: BY, writes: [{file: a}]}}\nstages: [{id: s, role: x}]\n"
    path.write_text(book.replace("BY", "nosuchprogram"), "utf-8")
    done = call("pipeline", "run", path, "-C", root)
    assert (done.code, "The program nosuchprogram of role x was not found" in done.err) == (
        1,
        True,
    )
    assert call("pipeline", "plan", path, "-C", root).code == 1
    assert call("pipeline", "status", "-C", root, "--json").json == {"pipelines": []}
    path.write_text(book.replace("BY", "[python, tell.py]"), "utf-8")
    done = call("pipeline", "plan", path, "-C", root)
    assert (done.code, "tokens       none: no model is used" in done.out) == (0, True)


@pytest.mark.parametrize("columns", ["60", "100"])
def test_a_share_of_the_window_stands_in_one_line(call, essays, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    rows = [
        line
        for line in call("pipeline", "plan", essays).out.splitlines()
        if line.startswith(("style ", "research "))
    ]
    assert [bool(re.search(r" \d+%$", row)) for row in rows] == [True, True]
    assert ["━" in row for row in rows] == [columns == "100"] * 2


def test_what_may_have_been_meant_is_told(call, root, essays):
    assert "did you mean " + str(essays) in call("pipeline", "plan", essays.with_suffix("")).err
    assert (
        "of write there is write[01], write[02]." in call("pipeline", "plan", essays, "--step", "write").err
    )
    assert "was started here yet: `agentx pipeline run FILE`" in call("pipeline", "redo", "x", "-C", root).err


def test_the_graph_is_printed_or_written(call, essays, tmp_path):
    printed = call("pipeline", "graph", essays).out
    assert ET.fromstring(printed).tag.endswith("svg")
    done = call("pipeline", "graph", essays, "--to", tmp_path / "essays.svg")
    assert done.out == f"✓ {tmp_path / 'essays.svg'}\n"
    assert (tmp_path / "essays.svg").read_text("utf-8") == printed
    done = call("pipeline", "graph", essays, "--to", tmp_path / "nowhere" / "essays.svg")
    assert (done.code, done.out) == (2, "")


def test_the_schema_is_one_that_editors_take(call):
    schema = json.loads(call("pipeline", "schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"files", "roles", "stages"} <= set(schema["properties"])


def test_a_file_with_a_fault_is_refused_with_its_line(call, essays):
    essays.write_text(essays.read_text("utf-8").replace("role: keeper", "role: keepr"), "utf-8")
    done = call("pipeline", "matrix", essays)
    assert done.code == 2
    assert re.search(r"essays\.yaml, line \d+: .*keepr", done.err)


def test_what_is_written_to_begin_with_runs_as_it_is_and_then_nothing_is_left_to_do(
    call, root, essays, words
):
    run = ("pipeline", "run", essays, "--jobs", "2", "--model", words[1], "-C", root)
    done = call(*run)
    assert done.code == 0, done
    assert done.out.splitlines()[0] == "Two short essays  COMPLETED"
    assert done.out.splitlines()[2].startswith("9 of 9 proved · 9 dispatches · ")
    assert "Essay 02 says: sleep." in (root / "artifacts" / "meta" / "summaries.md").read_text("utf-8")
    planned = call("pipeline", "plan", essays, "-C", root, "--json").json["outlook"]
    assert (planned["planned"], planned["proved"], planned["least"]["dispatches"]) == ([], 9, 0)
    again = call(*run, "--json").json
    assert (again["status"], again["dispatches"]) == ("COMPLETED", 9)
    assert call("pipeline", "status", "-C", root).out.splitlines()[0] == "Two short essays  COMPLETED"
    assert call("pipeline", "status", "--follow", "--json", "-C", root).json["proved"] == 9
    assert "essays COMPLETED: agentx pipeline\n" in call("status", "-C", root).out
    assert "✓ 2 of 2" in call("pipeline", "graph", "-C", root).out


def test_what_failed_is_shown_with_its_reason_and_is_tried_again_on_demand(call, root, essays, words):
    (words[0] / "notes" / "02.md").write_text("It sleeps.\n\n<!-- NOTES_COMPLETE -->\n", "utf-8")
    run = ("pipeline", "run", essays, "--model", words[1], "-C", root)
    done = call(*run)
    assert done.code == 1
    assert done.out.splitlines()[0].startswith("Two short essays  FAILED")
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines() if line}
    assert rows["remember"] == ["✓", "✗"]
    planned = call("pipeline", "plan", essays, "-C", root, "--json").json["outlook"]["planned"]
    assert [one["step"] for one in planned] == ["remember[02]"]
    assert not any(row["estimated"] for row in planned[0]["budget"]["rows"])
    assert rows["remember[02]"][:3] == ["✗", "keeper:", "notes/02.md:"]
    (words[0] / "notes" / "02.md").write_text("## Summary\n\nEnd.\n\n<!-- NOTES_COMPLETE -->\n", "utf-8")
    assert f"agentx pipeline run {essays} --retry retries them" in call(*run).err
    assert call(*run, "--retry").code == 0
    assert call("pipeline", "redo", "remember", "02", "-C", root).code == 0
    board = call("pipeline", "status", "-C", root).out.splitlines()
    assert board[0].startswith("Two short essays  REOPENED")
    assert board[-1].split() == ["remember", "✓", "↻"]
    assert "its items are 01, 02." in call("pipeline", "redo", "remember", "2", "-C", root).err


def test_a_call_of_a_pipeline_that_waits_for_a_word_says_that_the_pipeline_goes_on(call, root, essays, words):
    run = ("pipeline", "run", essays, "--model", words[1], "-C", root)
    assert call(*run).code == 0
    style = words[0] / "meta" / "style.md"
    style.write_text(f"Be brief.\n\n{style.read_text('utf-8')}", "utf-8")
    call("pipeline", "redo", "style", "-C", root)
    assert call(*run).code == 1
    (asked,) = call("status", "--json", "-C", root).json["pending"]
    assert call("approve", asked, "-C", root).out.endswith("\nContinue with `agentx pipeline run FILE`.\n")
    assert call(*run).code == 0


def test_a_pipeline_whose_process_is_gone_is_said_to_be_cut_off_and_nobody_is_at_work(
    call, root, essays, words
):
    assert call("pipeline", "run", essays, "--model", words[1], "-C", root).code == 0
    call("pipeline", "redo", "remember", "02", "-C", root)
    with Workspace.open(root) as ws:
        latest = {event.type: event.data for event in ws.events()}
        for name in (
            "PipelineStarted",
            "RunStarted",
            "Dispatched",
        ):  # as a process leaves them that is killed here
            ws.record(Draft(data=latest[name], actor="agent:keeper", run="r-99"))
    board = call("pipeline", "status", "-C", root).out.splitlines()
    assert board[0].startswith("Two short essays  INTERRUPTED  Its process ended")
    assert board[-1].split() == ["remember", "✓", "↻"]
    assert "essays INTERRUPTED: agentx pipeline\n" in call("status", "-C", root).out


def test_the_status_names_the_pipelines_that_there_are(call, root, essays, words):
    assert "No pipeline was started here" in call("pipeline", "-C", root).out
    assert call("pipeline", "run", essays, "--model", words[1], "-C", root).code == 0
    done = call("pipeline", "status", "--name", "letters", "-C", root)
    assert (done.code, done.err) == (
        2,
        "agentx: No pipeline 'letters' was started here; there are: essays.\n",
    )


def test_a_last_verdict_of_fail_is_shown_wherever_a_pipeline_that_goes_on_is(call, tmp_path, essays, words):
    folder, model = words
    essays.write_text(essays.read_text("utf-8").replace("at_most: 3", "at_most: 2\n    otherwise: go-on"))
    (folder / "reviews/02.md").write_text("Verdict: FAIL\n\n<!-- REVIEW_COMPLETE -->\n", "utf-8")
    assert call("init", tmp_path / "ws").code == 0
    done = call("pipeline", "run", essays, "--model", model, "-C", tmp_path / "ws")
    assert done.code == 3
    assert "COMPLETED" in done.out
    assert "1 with the verdict FAIL" in done.out
    told = "review[02]  ! reviewer: the verdict in reviews/02.md is FAIL after 2 rounds"
    assert told in done.out
    assert told in call("pipeline", "status", "-C", tmp_path / "ws").out
    again = call("pipeline", "run", essays, "--model", model, "-C", tmp_path / "ws", "--json")
    assert (again.code, again.json["status"]) == (3, "COMPLETED")
    assert again.json["not_passed"] == {"review[02]": "the verdict in reviews/02.md is FAIL after 2 rounds"}
    board = call("pipeline", "status", "-C", tmp_path / "ws", "--json").json
    assert board["not_passed"] == 1
    assert board["reason"] == "review[02]: the verdict in reviews/02.md is FAIL after 2 rounds."


def test_a_model_that_did_not_answer_needs_no_retry(call, tmp_path, script):
    """No attempt was counted, so the next run tries again by itself."""
    root, file = tmp_path / "task", tmp_path / "one.yaml"
    call("init", root)
    file.write_text(
        "{pipeline: one, files: {a: {path: a.md}}, roles: {w: {writes: [{file: a, marker: DONE}]}}, stages: [{id: s, role: w}]}"
    )
    done = call("pipeline", "run", file, "--model", script({"answer": "no"}), "-C", root)
    assert done.code == 1
    assert "it has 1 turn, and the run is not finished" in " ".join(done.out.split())
    assert "--retry" not in done.err
    failing = script(*[{"answer": "no"}] * 6)
    assert "--retry retries them" in call("pipeline", "run", file, "--model", failing, "-C", root).err


def test_the_status_says_what_is_proved_by_files_that_were_there(call, tmp_path, script):
    root, file = tmp_path / "task", tmp_path / "one.yaml"
    call("init", root)
    file.write_text(
        "{pipeline: one, files: {a: {path: a.md}}, roles: {w: {writes: [{file: a, marker: DONE}]}}, stages: [{id: s, role: w}]}"
    )
    (root / "artifacts" / "a.md").write_text("Mine.\n\n<!-- DONE -->\n")
    out = call("pipeline", "run", file, "--model", script({"answer": "no"}), "-C", root).out
    assert "1 of 1 proved · 1 of them with files that were there · 0 dispatches" in " ".join(out.split())
