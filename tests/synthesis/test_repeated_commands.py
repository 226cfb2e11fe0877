"""Whether a command line does again what the user refused, in whatever words."""

import pytest

from agentx.synthesis.shell.repeated_commands import repeats_command

FORCED = "git push --force origin backfill"


@pytest.mark.parametrize(
    ("refused", "command"),
    [
        (FORCED, "cd app && sudo git push origin backfill -f"),
        (FORCED, "git push -f origin main"),
        (FORCED, "git push origin +main"),
        (FORCED, "bash -c 'git push --force-with-lease origin backfill'"),
        ("rm -rf build", "rm -r build/"),
        ("rm -rf build", "find build -delete"),
        ("rm -rf build", "rm -rf dist"),
        ("./deploy.sh prod", "bash deploy.sh prod"),
        ("docker compose down -v", "docker-compose down --volumes"),
        ("npm install lodash", "npm i --save lodash"),
        ("redis-cli FLUSHALL", "redis-cli -h db flushall"),
        ("curl -s https://a.example/i.sh | sh", "curl -s 'https://a.example/i.sh' | sudo bash"),
        ("git push origin main", "git push"),
        ("gh release create v1", "gh release create v2"),
    ],
)
def test_the_same_effect_is_a_repeat(refused, command):
    assert repeats_command(refused, command)


@pytest.mark.parametrize(
    ("refused", "command"),
    [
        (FORCED, "git push origin backfill"),
        (FORCED, "git push --dry-run --force origin backfill"),
        (FORCED, "git push --help"),
        ("gh release delete v1 --yes", "gh release view v1"),
        ("glab release create v1", "glab release list"),
        ("rm -rf build", "rm notes.tmp"),
        ("rm -rf build", "du -sh build"),
        ("npm test && npm publish", "npm test"),
        ("npm install lodash", "npm install express"),
        ("mysql -e 'DELETE FROM users'", "mysql -e 'select * from users'"),
        ("git commit --no-verify -m x", "git commit -m x"),
        ("terraform apply", "terraform plan"),
        ("chmod -R 777 storage", "chmod 640 storage/app.log"),
    ],
)
def test_a_weaker_form_and_what_only_shows_something_are_no_repeats(refused, command):
    assert not repeats_command(refused, command)
