"""Reads patches in the form of Codex's tool ``apply_patch``."""

from collections.abc import Iterator

from agentx.importing.entries import FileStep

_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "


def steps_of(patch: str) -> Iterator[FileStep]:
    r"""Yield what a patch does to files; a moved file is only edited under its former name.

    >>> patch = "*** Begin Patch\n*** Update File: a.py\n@@\n x = 1\n-y = 2\n+y = 3\n*** End Patch"
    >>> [(step.path, step.old, step.new) for step in steps_of(patch)]
    [('a.py', 'x = 1\ny = 2\n', 'x = 1\ny = 3\n')]
    """
    path, how = "", ""
    lines: list[str] = []
    for line in [*patch.splitlines(), "*** End Patch"]:
        if not line.startswith("*** ") and line != "***" and not (how == "edited" and line.startswith("@@")):
            lines.append(line)
            continue
        if line.startswith("*** End of File"):
            continue
        yield from _step(path, how, lines)
        lines = []
        for start, which in ((_ADD, "written"), (_DELETE, "removed"), (_UPDATE, "edited")):
            if line.startswith(start):
                path, how = line[len(start) :].strip(), which
                break
        else:
            if not line.startswith(("@@", _MOVE)):
                path = how = ""
        if how == "removed":
            yield FileStep(path=path, how="removed")
            path = how = ""


def _step(path: str, how: str, lines: list[str]) -> Iterator[FileStep]:
    if not path or (how == "edited" and not lines):
        return
    if how == "written":
        content = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
        yield FileStep(path=path, how="written", content=content)
    elif how == "edited":
        old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        if old != new:
            yield FileStep(path=path, how="edited", old=old, new=new)
