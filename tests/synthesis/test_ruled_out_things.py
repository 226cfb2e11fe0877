"""What an action would bring in, compared by name with the things that were ruled out."""

import pytest

from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.gates.ruled_out_things import brought_in, things_of
from agentx.synthesis.memory.checks import PathCheck
from agentx.synthesis.memory.items import ConstraintDetail, Evidence, MemoryItem, RejectionDetail


def _ruled_out(said, idea="", **fields):
    item = MemoryItem(
        id="x-1",
        kind="rejection",
        text=said,
        evidence=(Evidence(1, 0, len(said), said),),
        detail=RejectionDetail(idea=idea or said),
        **fields,
    )
    return things_of([item])


COMMANDS = """
We're done with Webpack. | pnpm add -D webpack webpack-cli | stop
We're done with Webpack. | npx webpack build | stop
We're done with Webpack. | npm uninstall webpack | pass
We're done with Webpack. | rg -l webpack src | pass
We're done with Webpack. | git commit -am 'Remove webpack' | pass
We're done with Webpack. | sed -i '/webpack/d' package.json | pass
We're done with Webpack. | sed -i 's/esbuild/webpack/' package.json | stop
We're done with Webpack. | sed -i 's/webpack/esbuild/' package.json | pass
No more cron jobs in here. | (crontab -l; echo '5 4 * * * bin/report') | crontab - | stop
No more cron jobs in here. | crontab -l | grep -v report | crontab - | pass
No more cron jobs in here. | crontab -l | pass
Kafka is dead to us. | helm upgrade --install events bitnami/kafka | stop
Kafka is dead to us. | docker run -d apache/kafka:3.7.0 | stop
Kafka is dead to us. | docker compose rm -sf kafka | pass
Kafka is dead to us. | go get github.com/segmentio/kafka-go@latest | stop
MongoDB is off the table. | pip install 'pymongo>=4' | stop
MongoDB is off the table. | brew install mongodb-community@7.0 | stop
MongoDB is off the table. | pytest -k mongodb | pass
We aren't scraping Instagram. | python3 -c "import requests; requests.get('https://www.instagram.com/x')" | stop
Drop the idea of emailing the tenants. | python3 tools/send_mail.py --list tenants | stop
Drop the idea of emailing the tenants. | python3 tools/print_list.py --list tenants | pass
Go is ruled out for the tools. | make go-live | pass
Electron is dead to us. | npx create-electron-app@latest desk | stop
Machine translation is out for good. | deepl text --to EN "$(cat 3.txt)" | stop
No more feature flags in here. | npm i --save launchdarkly-react-client-sdk | stop
Kubernetes is off the table. | helm upgrade --install api ./chart | stop
Kubernetes is off the table. | kubectl get pods | pass
Redux has no place in src/admin. | npm i @reduxjs/toolkit | pass
Redux has no place in src/admin. | cd src/admin && npm i @reduxjs/toolkit | stop
A migration that already sits in db/migrate is history. | bin/rails db:migrate:status | pass
""".strip().splitlines()


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_that_brings_in_a_thing_is_found(line):
    said, command, expected = _split(line)
    found = brought_in(_ruled_out(said), command, ())
    assert bool(found) == (expected == "stop"), found


def _split(line):
    said, _, rest = line.partition(" | ")
    command, _, expected = rest.rpartition(" | ")
    return said, command, expected


FILES = [
    ("Redis for sessions is off the table.", "compose.yml", "services:\n  s:\n    image: redis:7\n", "stop"),
    ("Redis for sessions is off the table.", "app.py", "import redis\n", "stop"),
    ("Redis for sessions is off the table.", "app.py", "# no redis here\nstore = {}\n", "pass"),
    ("Redis for sessions is off the table.", "docs/why.md", "We run Redis nowhere.\n", "pass"),
    ("I don't want to see moment again", "a.ts", "import moment from 'moment';\n", "stop"),
    ("I don't want to see moment again", "a.ts", "const moment = Math.round(seconds);\n", "pass"),
    ("Tailwind is a no-go here.", "package.json", '{"devDependencies": {"@tailwindcss/forms": "1"}}', "stop"),
    ("Tailwind is a no-go here.", "tailwind.config.js", "export default {}\n", "stop"),
    ("Jenkins has no place in this repo.", "Jenkinsfile", "pipeline { agent any }\n", "stop"),
    ("no more jupyter notebooks in this repo", "explore/Churn.ipynb", '{"cells": []}', "stop"),
    ("Google Fonts are banned.", "base.html", '<link href="https://fonts.googleapis.com/css2">', "stop"),
    ("The idea with the singleton is buried.", "A.cs", "class A {\n    // Singleton\n}\n", "stop"),
    (
        "The idea with the singleton is buried.",
        "A.cs",
        "class A {\n    // passed in, no singleton\n}\n",
        "pass",
    ),
    (
        "Express is off the table.",
        "rates.py",
        "def express_fee(weight):\n    return RATES['express']\n",
        "pass",
    ),
    ("MongoDB is off the table.", "src/db.js", 'import mongoose from "mongoose";\n', "stop"),
    ("Google Analytics is out for good.", "head.html", "<script>gtag('config', 'G-5')</script>", "stop"),
    ("Google Sheets is banned.", "sync.py", "import gspread\n", "stop"),
    ("Kubernetes is off the table.", "api.yaml", "apiVersion: apps/v1\nkind: Deployment\n", "stop"),
    ("ORMs are banned.", "models.py", "from sqlalchemy import select\n", "stop"),
    ("No singletons in here.", "A.cs", "public static A Instance { get; set; }\n", "stop"),
    ("No singletons in here.", "a.py", "instance.save()\n", "pass"),
    ("Feature flags are banned.", "a.py", "flag = parse(unleash)\n", "pass"),
    (
        "panic has no place in internal/handlers.",
        "cmd/main.go",
        'package main\n\nfunc f() { panic("x") }\n',
        "pass",
    ),
    (
        "panic has no place in internal/handlers.",
        "internal/handlers/a.go",
        'package a\n\nfunc f() { panic("x") }\n',
        "stop",
    ),
    ("pandas is fine in lab/, but it is banned in service/", "lab/a.py", "import pandas\n", "pass"),
    ("pandas is fine in lab/, but it is banned in service/", "service/a.py", "import pandas\n", "stop"),
    ("Bootstrap is gone for good.", "bin/bootstrap.sh", "python3 -m venv .venv\n", "pass"),
    ("moment is banned.", "a.tsx", "const a = () => <p>Nothing at the moment</p>;\n", "pass"),
    ("An @Autowired on a field is banned.", "A.java", "import org.springframework.Autowired;\n", "pass"),
    ("Celery is a no-go.", "recipes/salad.json", '{"ingredients": ["celery", "apple"]}', "pass"),
    ("No more raffles in the parish letter.", "letters/advent.md", "Come to the raffle!\n", "stop"),
    ("No more raffles in the parish letter.", "letters/advent.md", "There is no raffle this year.\n", "pass"),
    ("No more raffles in the parish letter.", "minutes/may.md", "The raffle raised 40 pounds.\n", "pass"),
    ("We won't use pandas for these reports.", "zoo/spring.md", "The red pandas had twins.\n", "pass"),
]


@pytest.mark.parametrize(("said", "path", "text", "expected"), FILES)
def test_a_file_that_brings_in_a_thing_is_found(said, path, text, expected):
    found = brought_in(_ruled_out(said), "", [CheckedChange(path=path, after=text)])
    assert bool(found) == (expected == "stop"), found


def test_what_was_there_before_is_not_brought_in():
    change = CheckedChange(path="a.py", before="import redis\n", after="import redis\nimport csv\n")
    assert not brought_in(_ruled_out("Redis is off the table."), "", [change])


def test_an_idea_that_was_added_without_a_sentence_is_compared_too():
    things = _ruled_out("Blue-green deployments")
    (found,) = brought_in(things, "", (), "roll out with blue-green deployments from June")
    assert (found.item.id, found.place) == ("x-1", "proposes it")
    assert not brought_in(things, "", (), "explain why we have no blue-green deployments")


def test_only_what_stands_or_waits_to_be_settled_is_compared():
    said = "Redis is off the table."
    assert _ruled_out(said, status="candidate")
    assert not _ruled_out(said, status="retired")


def test_a_rule_with_a_check_is_left_to_its_check():
    detail = ConstraintDetail(modality="must_not", checks=(PathCheck(paths=("**/Jenkinsfile",)),))
    item = MemoryItem(id="c-1", kind="constraint", text="Don't ever use Jenkins", detail=detail)
    assert not things_of([item])
