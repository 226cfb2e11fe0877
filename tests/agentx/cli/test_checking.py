"""What `agentx verify` and `repair` say on a terminal and to programs."""

import re

LIVE = "history.jsonl"


def damage(root):
    log = root / LIVE
    before = log.read_bytes()
    log.write_bytes(before.replace(b"requirements", b"requirementz", 1))
    return before


def test_verify_shows_what_was_looked_at(call, root):
    done = call("verify", "-C", root)
    assert done.code == 0, done
    for name in ("objects", "commits", "history", "artifacts", "state", "index"):
        assert re.search(rf"✓ +{name} +\d+\.\d s ", done.out), done.out
    assert "No damage found" in done.out


def test_a_finding_is_one_line_with_what_to_do_and_exit_code_1(call, root):
    damage(root)
    done = call("verify", "-C", root)
    assert done.code == 1
    assert re.match(rf"✗ {LIVE}:\d+ is event \d+, and is damaged\. → agentx repair\n", done.out), done.out
    assert "1 finding." in done.out
    done = call("verify", "--json", "-C", root)
    assert done.code == 1
    assert not done.json["sound"]
    assert [finding["todo"] for finding in done.json["verified"]["findings"]] == ["agentx repair"]


def test_repair_says_what_it_restored_and_where_the_old_lies(call, root):
    before = damage(root)
    dry = call("repair", "--dry-run", "-C", root)
    assert dry.code == 1
    assert f"{LIVE} would be restored from commit" in dry.out
    assert (root / LIVE).read_bytes() != before
    done = call("repair", "-C", root)
    assert done.code == 0, done
    assert f"✓ {LIVE} was restored from commit" in done.out
    assert (root / LIVE).read_bytes() == before
    (aside,) = re.findall(r"was moved to (\S+)\.", done.out)
    assert b"requirementz" in (root / aside / LIVE).read_bytes()
    assert call("verify", "-C", root).code == 0
    assert "Nothing to repair" in call("repair", "-C", root).out
    assert call("repair", "--json", "-C", root).json["repaired"] == {"mended": [], "left": [], "aside": ""}


def test_a_purged_event_is_shown_and_no_finding(call, root):
    log = root / LIVE
    lines = log.read_bytes().splitlines(keepends=True)
    from agentx.storage.events.codec import split

    number = next(n for n, line in enumerate(lines) if b"UserMessageSent" in line)
    parts = split(lines[number])
    tail = b',"digest":"%s","hash":"%s"}\n' % (parts.digest.hex().encode(), parts.hash.encode())
    lines[number] = parts.header + tail
    log.write_bytes(b"".join(lines))
    done = call("verify", "-C", root)
    assert f"event {number + 1} (UserMessageSent) was purged" in done.out
    assert "damaged" not in done.out
