"""A directory and the decisions of a task are summarised from what is there, the same each time, within a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.language.tokens import count_tokens
from agentx.synthesis.memory.items import Evidence, MemoryItem, Scope
from agentx.synthesis.recall.summaries import MAX_TOKENS, directory_purpose, summarize_decisions
from agentx.synthesis.state.state import Message

FILES = {
    "services/README.md": "[![badge](x)](y)\n\n# Services\n\nFetches market data and keeps it for a day.\nNothing else.\n\n## Use\n\nRun it.\n",
    "services/fetch.py": '#!/usr/bin/env python\n"""Fetches quotes from the exchange.\n\nMore."""\n\nclass Client:\n    def get(self): ...\n\ndef quote(): ...\ndef _private(): ...\n',
    "services/go/main.go": "// Serves quotes over HTTP.\npackage main\n\nfunc Serve() {}\n",
    "services/logo.png": None,
    "docs/index.md": "# Docs\n\nHow to use it all in one place.\n",
}


def rule(number=1, paths=(), kind="constraint", **fields):
    text = fields.pop("text", f"rule number {number}")
    return MemoryItem(
        id=f"c-{number}",
        kind=kind,
        text=text,
        scope=Scope(paths=paths),
        evidence=(Evidence(number),),
        **fields,
    )


def test_a_directory_speaks_through_its_readme_its_docstrings_and_its_symbols():
    text = directory_purpose("services", FILES).text
    assert text.startswith(
        "# services\n\nServices: Fetches market data and keeps it for a day. Nothing else.\n"
    )
    assert "4 files: 1 .go, 1 .md, 1 .png, 1 .py" in text
    assert "Directories: `go/` (1)" in text
    assert "- `fetch.py`: Fetches quotes from the exchange. Defines `Client`, `quote`." in text
    assert "- `go/main.go`: Serves quotes over HTTP. Defines `Serve`." in text
    assert "- `logo.png` (not text, or too large to read)" in text
    assert "docs" not in text


def test_without_a_readme_the_package_docstring_says_what_it_is_for():
    files = {"app/b.py": '"""Other."""', "app/__init__.py": '"""Pays invoices."""\n'}
    assert directory_purpose("app/", files).text.startswith("# app\n\nPays invoices.\n")


def test_a_licence_header_is_no_purpose():
    assert "Copyright" not in directory_purpose("", {"a.js": "// Copyright 2020 X\nfunction f() {}\n"}).text


def test_the_root_counts_everything():
    summary = directory_purpose(".", FILES)
    assert (summary.path, summary.files) == ("", 5)
    assert "`services/` (4), `docs/` (1)" in summary.text


@pytest.mark.parametrize(
    ("directory", "paths", "applies"),
    [
        ("services", (), True),
        ("services", ("**/*.py",), True),
        ("docs", ("**/*.py",), False),
        ("docs", ("*.py",), False),
        ("services", ("**/requirements.txt",), True),
        ("services", ("requirements.txt",), True),
        ("services", ("docs/**",), False),
        ("services", ("services/go/**",), True),
        ("services/go", ("services/**",), True),
        ("services/go", ("services/*.toml",), False),
        ("services", ("services/pyproject.toml",), True),
        ("services/go", ("services/pyproject.toml",), False),
        ("", ("docs/**",), True),
    ],
)
def test_the_rules_whose_scope_reaches_the_directory_are_shown(directory, paths, applies):
    summary = directory_purpose(directory, FILES, [rule(7, paths)])
    assert summary.rules == (("c-7",) if applies else ())
    assert ("rule number 7" in summary.text) == applies
    assert ("event 7" in summary.text) == applies


def test_ended_rules_and_other_memories_are_not_rules_of_a_place():
    items = [
        rule(1, status="retired"),
        rule(2, kind="knowledge"),
        rule(3, kind="rejection"),
        rule(4, status="candidate"),
    ]
    assert directory_purpose("services", FILES, items).rules == ("c-3",)


def test_a_large_directory_stays_within_the_budget_and_says_what_it_leaves_out():
    files = {
        f"src/module_{n}.py": f'"""{"Long words here. " * 30}"""\n' + "def f(): ...\n" * 50
        for n in range(400)
    }
    summary = directory_purpose("src", files, [rule(n) for n in range(30)])
    assert count_tokens(summary.text) <= MAX_TOKENS
    assert "400 files: 400 .py" in summary.text
    assert "more; see `list_directory`" in summary.text
    assert "… and 10 more" in summary.text
    assert len(summary.rules) == 30


def test_the_order_in_which_files_are_given_makes_no_difference():
    assert directory_purpose("", FILES) == directory_purpose("", dict(reversed(FILES.items())))


@given(
    st.dictionaries(
        st.sampled_from(["a/x.py", "a/README", "a/README.md", "a/y.js", "a/z.rst", "a/b/c.toml", "a/n"]),
        st.none() | st.text(alphabet="ab \n\"'#=-`/*\ud800\0.[]", max_size=200),
    )
)
def test_any_files_are_summarised_within_the_budget(files):
    summary = directory_purpose("a", files)
    assert summary.files == len(files)
    assert count_tokens(summary.text) <= MAX_TOKENS


def test_an_empty_directory_is_said_to_be_empty():
    assert directory_purpose("gone", FILES).text == "# gone\n\n0 files"


def test_what_stands_is_listed_with_its_events_and_what_ended_is_not():
    text = summarize_decisions(
        [
            rule(3, ("**/*.py",), text="Add @disable_cache.", until="you can drop it"),
            rule(5, kind="rejection", text="No Redis."),
            rule(6, kind="decision", text="Use Postgres."),
            rule(8, kind="decision", text="Use MySQL.", status="retired"),
            rule(9, kind="knowledge", text="Water is wet."),
        ]
    )
    assert text == (
        "## Demands\n- Add @disable_cache.; in **/*.py; until you can drop it (c-3, event 3)\n\n"
        "## Ruled out\n- No Redis. (c-5, event 5)\n\n## Decisions\n- Use Postgres. (c-6, event 6)"
    )


def test_decisions_that_were_only_said_are_listed_with_their_event_and_their_speaker():
    said = [
        Message(11, "", "user", "Thanks. We decided to keep the old API for now. Shall we go with Redis?"),
        Message(12, "", "user", "> we decided to drop it\n```\nwe decided nothing\n```\nNice weather."),
        Message(13, "", "agent:main", "OK, let's go with Postgres."),
        Message(14, "", "user", "We have decided on tabs."),
    ]
    text = summarize_decisions([rule(14, kind="decision", text="Tabs.")], said)
    assert text.endswith(
        "## Said in the conversation\n- We decided to keep the old API for now. (event 11, user)\n"
        "- OK, let's go with Postgres. (event 13, agent:main)"
    )


def test_nothing_decided_is_a_sentence():
    assert summarize_decisions([]) == "Nothing has been decided yet."


def test_too_many_decisions_lose_their_oldest_and_say_so():
    items = [rule(n, kind="decision", text=f"Decision {n} " + "word " * 30) for n in range(200)]
    text = summarize_decisions([rule(999), *items], max_tokens=600)
    assert count_tokens(text) <= 600
    assert "older left out" in text
    assert "Decision 199 " in text
    assert "Decision 0 " not in text
    assert "rule number 999" in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("__init__.py", '"""Pays invoices."""\n'),
        ("mod.rs", "//! Pays invoices.\n\nmod a;\n"),
        ("doc.go", "// Pays invoices.\npackage pay\n"),
        ("package.json", '{\n  "name": "pay",\n  "description": "Pays invoices."\n}\n'),
        ("Cargo.toml", '[package]\nname = "pay"\ndescription = "Pays invoices."\n'),
        ("index.ts", '"use strict";\n\n/** Pays invoices. */\nexport {};\n'),
        ("package-info.java", "/**\n * Pays invoices.\n */\npackage pay;\n"),
    ],
)
def test_the_purpose_of_a_package_is_what_it_says_of_itself(name, text):
    files = {
        f"pay/{name}": text,
        "pay/app.py": '"""Starts the program."""\n',
        "pay/sub/README.md": "# Other\n",
    }
    assert directory_purpose("pay", files).text.splitlines()[2] == "Pays invoices."


def test_where_nothing_describes_a_directory_its_names_do():
    files = {"pay/retry.rb": "x = 1\n", "pay/__init__.py": "", "pay/bank/a.rb": "x = 1\n"}
    line = directory_purpose("pay", files).text.splitlines()[2]
    assert line == "Nothing describes it; its parts are bank, retry."
