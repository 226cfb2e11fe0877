"""Orders to leave a folder as it is ("hands off src/vendor"), and the globs of that folder."""

from agentx.synthesis.demands.tables.vocabulary import compiled

_DIR = r"(?:folder|directory|dir)\b"
_PLACE = (
    r"(?:the |our |my )?[`\"']?(?:(?P<path#>(?:[\w.@-]{1,60}/){1,12}(?:[\w@-]{1,60})?|ˣ{3,80})"
    r"|(?P<name#>(?!(?:the|an?|any|my|our|your|this|that|these|those|same|other|current|whole|root|working"
    rf"|new|entire)\b)\.?[\w-]{{1,60}})(?=[`\"']? {_DIR}))[`\"']?(?: {_DIR})?"
    r"(?=\s*(?:[.,;:!)]+(?:\s|$)|$)|\s+(?:[-–—]|(?:ever|again|any ?more|at all|in any way|please|for now"
    r"|for the time being|without|unless|until|till|because|since|as long"
    r"|except|under|alone|untouched|unchanged|is|are|stays?|may|must|shall|should|can)\b))"
)
"""A folder as users name it: by a path without a file, or by a name and the word "folder".

``#`` is replaced by the number of the frame.
"""

_ANYTHING = (
    r"(?:(?:anything|any(?: of the)? (?:code|files?)|files|code|the (?:code|files|contents?)) (?:in|inside"
    r"|under|below|within|of|from) )?"
)
_TOUCHED = r"(?:touched|edited|modified|changed|altered)\b"

_FRAMES = (
    (
        r"(?:never|(?:do not|don't|must not|mustn't|may not|shall not|should not|shouldn't)(?: ever)?)"
        r" (?:touch|edit|modify|change|alter|mess with)"
        rf" {_ANYTHING}PLACE"
    ),
    rf"stop (?:touching|editing|modifying|changing|messing with) {_ANYTHING}PLACE",
    r"(?:leave|keep) PLACE (?:alone|untouched|unchanged)\b",
    r"(?:keep )?(?:your )?hands off(?: of)? PLACE",
    r"(?:stay|keep) (?:out of|away from) PLACE",
    r"PLACE (?:is|are|stays?) (?:completely |strictly )?(?:off[ -]limits|frozen|taboo|out of bounds)\b",
    rf"PLACE (?:must|may|shall|should) (?:not|never) (?:ever )?be {_TOUCHED}",
    (
        r"(?:nothing|no (?:files?|code)) (?:in|inside|under|below|within) PLACE (?:may|must|shall|should|can)"
        rf" (?:ever )?be {_TOUCHED}"
    ),
)

HANDS_OFF = compiled(
    r"^(?:(?:you|we) )?(?:"
    + "|".join(frame.replace("PLACE", _PLACE.replace("#", str(n))) for n, frame in enumerate(_FRAMES))
    + ")"
)
"""Says that everything in a folder must stay as it is.

A group ``path…`` or ``name…`` contains the folder; a masked quote may take its place.
"""


def frozen_globs(words: str) -> tuple[str, ...]:
    """Return the globs of the folder that a demand says must stay as it is; empty if there is none.

    A path starts at the root; a plain name matches every folder of that name.

    Args:
        words: The demand, without its lead-ins.

    >>> frozen_globs("Leave src/vendor alone"), frozen_globs("hands off the migrations folder")
    (('src/vendor/**',), ('migrations/**', '**/migrations/**'))
    """
    match = HANDS_OFF.match(words)
    named = {key: value for key, value in match.groupdict().items() if value} if match else {}
    for key, value in named.items():
        bare = value.removeprefix("./").rstrip("/")
        return (f"{bare}/**",) if key.startswith("path") else (f"{bare}/**", f"**/{bare}/**")
    return ()
