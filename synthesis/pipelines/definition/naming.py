"""Path patterns of a pipeline's definition."""

from functools import lru_cache

from agentx.storage.matching.globs import Starred


@lru_cache(maxsize=1_000)
def path_pattern(path: str) -> Starred:
    """Compile a path with stars: ``*`` matches within one name, ``**/`` any number of directories.

    Whatever the path is, its ``fullmatch`` takes time in proportion to the length of what it is matched with.

    >>> pattern = path_pattern("drafts/**/*.md")
    >>> [bool(pattern.fullmatch(path)) for path in ("drafts/a.md", "drafts/b/a.md", "a.md")]
    [True, True, False]
    """
    return Starred(path)
