"""Compare two contents of a file line by line, as ``git diff`` does."""

import msgspec
import pygit2

_BINARY_BYTES = 8_000


class FilePatch(msgspec.Struct, frozen=True):
    """The difference between two contents.

    Attributes:
        added: Number of lines that only the later one has.
        removed: Number of lines that only the earlier one has.
        binary: Whether one of them is binary; then no lines are counted.
        text: The unified diff, headed by both names; empty for binary contents and for equal ones.
    """

    added: int = 0
    removed: int = 0
    binary: bool = False
    text: str = ""


def compare(before: bytes | None, after: bytes | None, old: str, new: str) -> FilePatch:
    r"""Compare two contents.

    Args:
        before: The earlier one; ``None`` if there was no file.
        after: The later one; ``None`` for a missing file.
        old: Name of the earlier one.
        new: Name of the later one.

    >>> compare(b"one\ntwo\n", b"one\n2\n", "a.txt", "a.txt").text
    '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n'
    """
    if before == after:
        return FilePatch()
    if any(b"\0" in content[:_BINARY_BYTES] for content in (before, after) if content):
        return FilePatch(binary=True)
    made = pygit2.Patch.create_from(before, after, old_as_path=old, new_as_path=new)
    _, added, removed = made.line_stats
    text = (made.data or b"").decode("utf-8", "replace")
    at = text.find("\n@@ ") + 1
    names = (
        f"--- {f'a/{old}' if before is not None else '/dev/null'}\n"
        f"+++ {f'b/{new}' if after is not None else '/dev/null'}\n"
    )
    return FilePatch(added, removed, text=names + text[at:] if at else "")
