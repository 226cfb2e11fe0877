"""The baseline, and the measure of the house."""

import json

from tests import figures, house


def test_the_baseline_has_what_the_house_and_the_evaluation_are_compared_with():
    for of in ("house", "eval"):
        assert figures.baseline(of)
    assert set(house.PARTS) <= {key.split(".")[1].removesuffix("_lines") for key in figures.baseline("house")}


def test_a_later_run_is_printed_beside_the_baseline(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "BASELINE", tmp_path / "baseline.json")
    figures.keep_baseline("house", [figures.Figure("house.all_lines", "lines of code", 87_100)])
    assert json.loads((tmp_path / "baseline.json").read_text())["house"]["figures"] == {
        "house.all_lines": 87100
    }
    figures.show(
        [figures.Figure("house.all_lines", "lines of code", 52_400)], "here", figures.baseline("house")
    )
    out = capsys.readouterr().out
    assert "52,400" in out
    assert "87,100" in out


def test_lines_of_code_leave_reasons_out():
    assert house.lines_of_code('"""What."""\n\nimport os\n\n# Why.\nX = os.sep\n') == 1
