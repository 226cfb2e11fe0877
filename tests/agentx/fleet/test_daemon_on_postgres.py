"""The daemon of schedules on a real Postgres server, which several machines can share."""

import json
import signal

from tests.agentx.test_daemon import agents, slay, start, starts  # noqa: F401 - fixtures


def test_two_daemons_share_a_postgres_server_and_what_a_killed_one_had_is_run_once(
    agents, start, postgres, tmp_path  # noqa: F811 - fixtures
):  # fmt: skip
    folder = agents(2, does="sleep 0.2; echo done", resume=True)
    killed = start(folder, "--database", postgres.url)
    assert killed.stdout.readline()
    slay(tmp_path / "state")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    both = [start(folder, "--once", "--database", postgres.url) for _ in range(2)]
    told = [json.loads(one.communicate()[0].splitlines()[-1]) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert sum(one["runs"] for one in told) > 0
    found = starts(folder)
    assert set(found.values()) == {1}
    assert {name for name, _ in found} == {"agent-0", "agent-1"}
