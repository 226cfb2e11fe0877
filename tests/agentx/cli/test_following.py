"""``agentx follow``: rules of other workspaces hold here, with their source, until the user stops it."""

import subprocess

import pytest

from agentx.fleet import place as places
from agentx.settings import read_settings

REVIEW = "Never push to main without a review."


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    """No fleet of another test, and none for others."""
    monkeypatch.setenv("AGENTX_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def pair(call, tmp_path):
    """Two workspaces beside each other; the first has a rule."""
    for name in ("Règles d'équipe", "mine"):
        assert call("init", tmp_path / name).code == 0
    assert call("-C", tmp_path / "Règles d'équipe", "say", REVIEW).code == 0
    return tmp_path / "Règles d'équipe", tmp_path / "mine"


def test_a_workspace_is_followed_listed_and_left(call, pair):
    _, mine = pair
    done = call("-C", mine, "follow", "../Règles d'équipe")
    assert "Règles-d-équipe is followed: 1 rule of its user holds here." in done.out
    assert REVIEW in call("-C", mine, "memory", "list").out
    assert "Règles-d-équipe: 1 rule, event 3, read " in call("-C", mine, "status").out
    assert "Règles-d-équipe, event 2 (" in call("-C", mine, "memory", "show", "Règles-d-équipe:c-2").out
    assert (
        "can only be changed there: `agentx -C '"
        in call("-C", mine, "memory", "retire", "Règles-d-équipe:c-2").err
    )
    [listed] = call("-C", mine, "--json", "follow").json["followed"]
    assert (listed["name"], listed["source"], listed["event"]) == ("Règles-d-équipe", "../Règles d'équipe", 3)
    assert "does not hold" not in call("-C", mine, "follow", "--stop", "Règles-d-équipe").err
    assert call("-C", mine, "--json", "follow").json == {"followed": []}
    assert REVIEW not in call("-C", mine, "memory", "list").out


def test_what_one_says_against_followed_rules_is_answered_with_what_holds(call, pair):
    team, mine = pair
    call("-C", team, "say", "I prefer tabs for indentation.")
    call("-C", mine, "follow", team, "--name", "team")
    assert (
        "team:c-4 gives way to c-2 here." in call("-C", mine, "say", "I prefer spaces for indentation.").err
    )
    call("-C", team, "say", "Always write commit messages in English.")
    said = call("-C", mine, "say", "Never write commit messages in English.").err
    assert "c-4 is contrary to team:c-6, which stays in force: it can only be changed in team." in said
    listed = call("-C", mine, "follow").out
    assert "team:c-4 gives way to c-2" in " ".join(listed.split())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["."], "cannot follow itself"),
        (["../nothing"], "does not exist"),
        (["nothing"], "no fleet has it"),
        (["fleet:nothing"], "There is no fleet for the tenant 'default' here"),
        (["ext::sh -c true"], "could not be reached"),
        (["../Règles d'équipe", "--name", "a b"], "cannot be the name of a followed workspace"),
        (["--stop", "nothing"], "No followed workspace is named 'nothing'; followed: none."),
        (["../Règles d'équipe", "--stop", "x"], "not both"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_a_sentence_and_changes_nothing(call, pair, words, why):
    _, mine = pair
    before = (mine / "agentx.toml").read_text()
    done = call("-C", mine, "follow", *words)
    assert done.code
    assert why in done.err
    assert (mine / "agentx.toml").read_text() == before


def test_inside_a_run_nothing_is_followed(call, pair, monkeypatch):
    _, mine = pair
    monkeypatch.setenv("AGENTX_RUN", "r-1")
    done = call("-C", mine, "follow", "../Règles d'équipe")
    assert "refused inside an agent's run" in done.err
    assert "follow" not in (mine / "agentx.toml").read_text()


def test_a_bare_name_is_that_of_a_workspace_of_the_fleet(call, pair, tmp_path):
    team, mine = pair
    places.initialise(read_settings(), f"sqlite:///{tmp_path}/queue.sqlite", f"{tmp_path}/{{workspace}}.git")
    subprocess.run(["git", "clone", "-q", "--bare", team, tmp_path / "team.git"], check=True)
    assert "team is followed: 1 rule" in call("-C", mine, "follow", "team").out
    assert 'source = "fleet:team"' in (mine / "agentx.toml").read_text()
