"""Path patterns of a pipeline's definition."""

import re


def path_pattern(path: str) -> re.Pattern[str]:
    """Compile a path with stars: ``*`` matches within one name, ``**/`` any number of directories.

    >>> pattern = path_pattern("drafts/**/*.md")
    >>> [bool(pattern.fullmatch(path)) for path in ("drafts/a.md", "drafts/b/a.md", "a.md")]
    [True, True, False]
    """
    parts = re.split(r"(\*\*/|\*\*|\*)", path)
    stars = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(stars.get(part) or re.escape(part) for part in parts))
