"""Evidence for a whole file, when a question asks where something is done.

Such a question is in everyday words, and the code is in names. So the words of asking are left out, all
passages of a file count together, and the tests of a file speak for it: they say what it does.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

NEXT_PASSAGE = 0.3
"""Weight of a file's next passage, as a share of the one before it."""

OF_TESTS = 0.3
"""Weight of the best passage of a file's tests."""

File = tuple[str, str]
"""Source and path."""

_ASKING = frozenset(
    """
    how what which who when why whose where do does did done doing is are was were be been being get got
    gets it its i we us our my me you your they them their there here then than so such can could should
    would will shall may might must has have had one ones some any each every all both no not nor only
    also just even if else but because while between into onto about own other another way thing things
    something somebody someone anything part piece place code file function class method module
    component find need want show tell please decide decides decided deciding happen happens happened
    come comes make makes made making let lets give gives given take takes took
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
_KEPT_OR_WORD = re.compile(r'"[^"\n]*"|`[^`\n]*`|(?<![\w./-])[A-Za-z]+(?![\w/-]|\.\w)')
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TEST_MARKS = frozenset({"test", "tests", "spec", "specs", "bench"})
_UNNAMED = frozenset({"", "index", "init", "mod", "main", "lib"})


def subject_of(question: str) -> str:
    """Return a question without the words of asking, except in quotes; the question if nothing else is in it.

    >>> subject_of("Where is it decided which page is tried again?").split()
    ['page', 'tried', 'again?']
    """
    left = _KEPT_OR_WORD.sub(lambda found: "" if found[0].lower() in _ASKING else found[0], question)
    return left if re.search(r"\w", left) else question


def paired_name(path: str) -> str:
    """Return the name by which a file and its tests are paired: of the file, or of its directory.

    >>> {paired_name(path) for path in ("http_client.ts", "tests/test_http_client.py", "HTTPClientTest.java")}
    {'http client'}
    >>> paired_name("src/cookie/index.ts") == paired_name("src/cookie/index.test.ts") == "cookie"
    True
    """
    pure = PurePosixPath(path)
    name = _words(pure.name.rpartition(".")[0] or pure.name)
    return _words(pure.parent.name) if name in _UNNAMED else name


def spoken_for(tests: Mapping[File, float], files: Sequence[File]) -> dict[File, float]:
    """Return the highest level of the tests of each file; of namesakes, the nearest in the tree is meant."""
    named: dict[tuple[str, str], list[File]] = defaultdict(list)
    for source, path in files:
        named[source, paired_name(path)].append((source, path))
    levels: dict[File, float] = {}
    for (source, path), level in tests.items():
        found = named.get((source, paired_name(path)), [])
        around = set(PurePosixPath(path).parts[:-1])
        near = [len(around.intersection(PurePosixPath(other).parts[:-1])) for _, other in found]
        for file, common in zip(found, near, strict=True):
            if common == max(near):
                levels[file] = max(levels.get(file, 0.0), level)
    return levels


def by_whole_file(
    passages: Sequence[tuple[str, File, float]], tests: Mapping[File, float]
) -> tuple[dict[str, float], float]:
    """Score files by all of their passages and their tests.

    Args:
        passages: Id, file and score of each.
        tests: Level of the best passage of each file of tests, 0 to 1.

    Returns:
        The score of each file, by the id of its best passage; and the factor for all other scores, with which
        the best score stays what it is.
    """
    files: dict[File, list[tuple[str, float]]] = defaultdict(list)
    for name, file, score in sorted(passages, key=lambda passage: (-passage[2], passage[0])):
        files[file].append((name, score))
    if not files:
        return {}, 1.0
    spoken = spoken_for(tests, list(files))
    totals = {
        found[0][0]: OF_TESTS * spoken.get(file, 0.0)
        + sum(score * NEXT_PASSAGE**place for place, (_, score) in enumerate(found))
        for file, found in files.items()
    }
    top = max(totals.values())
    scale = max(found[0][1] for found in files.values()) / top if top else 1.0
    return {name: scale * total for name, total in totals.items()}, scale


def _words(name: str) -> str:
    words = (part.lower() for part in _NAME_PART.findall(name))
    return " ".join(word for word in words if word not in _TEST_MARKS)
