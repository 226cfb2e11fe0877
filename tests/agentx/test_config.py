"""``agentx.toml`` is checked when it is read, and set one value at a time without harm to the rest."""

import tomllib
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel

from agentx import config as config_module
from agentx.config import (
    Config,
    ConfigInvalid,
    effects,
    executable,
    parse_config,
    read_config,
    set_value,
)
from agentx.settings import read_settings
from agentx.synthesis.memory.effects import Effect


@pytest.fixture
def toml(tmp_path):
    def write(content):
        (tmp_path / "agentx.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


def test_a_missing_file_is_an_empty_one(tmp_path):
    assert read_config(tmp_path) == Config()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[model\n", "is not TOML"),
        (b"\xff\xfe", "is not TOML"),
        ("x = " + "[" * 20_000, "is not TOML"),
        ("[model]\nnmae = 'x'\n", "model.nmae"),
        ("[limits]\nmax_steps = 0\n", "limits.max_steps"),
        ("[limits]\nmax_time_s = nan\n", "limits.max_time_s"),
        ("[tools]\nisolation = 'hope'\n", "tools.isolation"),
        ("[[sources]]\nname = '../x'\npath = '.'\n", "sources.0.name"),
        ("model = 7\n", "model"),
    ],
)
def test_what_is_no_setting_is_told_in_a_sentence(toml, content, sentence):
    with pytest.raises(ConfigInvalid, match=sentence):
        read_config(toml(content))


def test_a_directory_of_that_name_is_told(tmp_path):
    (tmp_path / "agentx.toml").mkdir()
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        read_config(tmp_path)


def test_setting_a_value_leaves_comments_and_the_rest_as_they_are(toml):
    root = toml("# mine\n[model]\n# why\nname = 'a'\ntimeout_s = 5\n\n[tools]\nrun_command = false\n")
    assert set_value(root, "model.name", "gpt").model.name == "gpt"
    assert set_value(root, "tools.run_command", "true").tools.run_command
    assert set_value(root, "limits.max_steps", "3").limits.max_steps == 3
    text = (root / "agentx.toml").read_text()
    assert text.startswith('# mine\n[model]\n# why\nname = "gpt"\ntimeout_s = 5\n')
    assert tomllib.loads(text)["limits"] == {"max_steps": 3}
    assert [path.name for path in root.iterdir()] == ["agentx.toml"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "x"), ("nope.name", "x"), ("model.nope", "x"), ("limits.max_steps", "many"), ("limits.max_steps", "-1"),
        ("model.name]\n[tools", "x"), ("a.b.c.d", "1"), ("", ""),
    ],
)  # fmt: skip
def test_a_wrong_name_or_value_is_refused_and_the_file_is_as_it_was(toml, name, value):
    root = toml("[model]\nname = 'a'\n")
    with pytest.raises(ConfigInvalid):
        set_value(root, name, value)
    assert (root / "agentx.toml").read_text() == "[model]\nname = 'a'\n"


def test_a_value_with_more_lines_sets_nothing_but_itself(toml):
    config = set_value(toml(""), "model.name", "'a'\n[tools]\nrun_command = true")
    assert not config.tools.run_command
    assert config.model.name == "'a'\n[tools]\nrun_command = true"


def test_the_environment_says_where_models_lie_and_who_is_there():
    settings = read_settings({"XDG_CACHE_HOME": "/c", "AGENTX_USER": "pat", "AGENTX_MODEL": "m"})
    assert (settings.cache_dir, settings.actor, settings.model) == (Path("/c/agentx"), "user:pat", "m")
    assert read_settings({"AGENTX_CACHE_DIR": "/d"}).cache_dir == Path("/d")
    assert read_settings({"AGENTX_CACHE_DIR": "/d"}).actor == "user"


def test_a_text_setting_takes_a_value_that_looks_like_another_type(tmp_path):
    from agentx.config import set_value

    assert set_value(tmp_path, "checks.tests.command", "true").checks.tests.command == "true"
    assert set_value(tmp_path, "limits.max_steps", "3").limits.max_steps == 3


def test_a_value_of_the_wrong_type_is_told_how_it_is_written(toml):
    with pytest.raises(ConfigInvalid, match=r'director\.executor: write a list, like \["claude", "-p"\]\.'):
        set_value(toml(""), "director.executor", "claude -p")


# --- what a setting can do -------------------------------------------------------------------------------------------


def test_every_setting_says_what_it_can_do_beyond_the_workspace():
    """A field without a mark of its effect, however deep it is nested, fails here and is named."""
    assert [name for name, effect in effects().items() if effect is None] == []


def test_a_forgotten_mark_is_found_wherever_it_is():
    """In a section, in a section of a section, and in a list of sections."""

    class Inner(BaseModel):
        deep: int = 0
        marked: Annotated[int, Effect.HARMLESS] = 0

    class Outer(BaseModel):
        plain: str = ""
        inner: Inner = Inner()
        many: tuple[Inner, ...] = ()
        one: Inner | None = None
        whole: Annotated[tuple[Inner, ...], Effect.READS] = ()

    missing = [name for name, effect in effects(Outer).items() if effect is None]
    assert missing == ["plain", "inner.deep", "many", "one"]


def test_a_setting_without_a_mark_counts_as_one_with_an_effect(monkeypatch):
    """What is forgotten restricts; it never lets through."""
    known = effects()
    monkeypatch.setattr(config_module, "effects", lambda: known | {"tools.words": None})
    said = parse_config("[tools]\nwords = ['colour']\n", Path("agentx.toml"))
    assert executable(said) == {"tools.words": ["colour"]}


def test_what_runs_calls_reads_and_loosens_is_marked_so():
    """The fields by which a clone could run its author's code, get a key, read files or drop a guard."""
    marked = {
        Effect.RUNS: "checks.tests.command checks.lint.command checks.build.command tools.run_command director.executor report.command",
        Effect.CALLS: "model.name model.api_base embeddings.model director.model cognition.response_model",
        Effect.READS: "workspace.artifacts checks.readable sources links",
        Effect.LOOSENS: "tools.approve tools.isolation secrets.artifacts director.files director.speaks limits.max_cost_usd",
    }
    for effect, names in marked.items():
        assert {effects()[name] for name in names.split()} == {effect}


def test_only_what_differs_from_a_default_is_what_trust_is_bound_to():
    """So a later version that adds a setting leaves what is trusted as it is."""
    assert executable(Config()) == {}
    said = parse_config("[tools]\nisolation = 'auto'\n[limits]\nmax_steps = 3\n", Path("agentx.toml"))
    assert executable(said) == {"limits.max_steps": 3}
