"""Orders to leave a folder as it is ("hands off src/vendor"), and the globs of that folder."""

from agentx.synthesis.demands.tables.vocabulary import compiled

_TOUCHED = r"be (?:touched|edited|modified|changed|altered)\b"

HANDS_OFF = compiled(
    r"^(?:(?:you|we) )?"
    # What comes before the folder
    r"(?:(?P<ban>(?:(?:never|do not|don't|mustn't|shouldn't|(?:must|may|shall|should) not)(?: ever)?"
    r" (?:touch|edit|modify|change|alter|mess with)|stop (?:touching|editing|modifying|changing)"
    r"|(?:keep )?(?:your )?hands off(?: of)?|(?:stay|keep) (?:out of|away from))"
    r"(?: (?:anything|(?:any(?: of the)? |the )?(?:code|files?|contents?)) (?:in|inside|under|below|within|of"
    r"|from))?) |(?P<leave>leave|keep) |(?P<nothing>nothing|no (?:files?|code)) (?:in|inside|under|below"
    r"|within) )?"
    # The folder: a path without a file, a masked quote, or a name and the word "folder"
    r"(?:the |our |my )?[`\"']?(?:(?P<path>(?:[\w.@-]{1,60}/){1,12}(?:[\w@-]{1,60})?|ˣ{3,80})"
    r"|(?P<name>(?!(?:the|an?|any|my|our|your|this|that|these|those|same|other|current|whole|root|working"
    r"|new|entire)\b)\.?[\w-]{1,60})(?=[`\"']? (?:folder|directory|dir)\b))[`\"']?"
    r"(?: (?:folder|directory|dir)\b)?"
    # What comes after it
    r"(?(ban)(?=\s*(?:[.,;:!)]+(?:\s|$)|$)|\s+(?:[-–—]|(?:ever|again|any ?more|at all|please|for now"
    r"|for the time being|without|unless|until|till|because|since|as long|except|under)\b))"
    r"|(?(leave) (?:alone|untouched|unchanged)\b"
    rf"|(?(nothing) (?:may|must|shall|should|can) (?:ever )?{_TOUCHED}"
    r"| (?:(?:is|are|stays?) (?:completely |strictly )?(?:off[ -]limits|frozen|out of bounds)\b"
    rf"|(?:must|may|shall|should) (?:not|never) (?:ever )?{_TOUCHED}))))"
)
"""Says that everything in a folder must stay as it is.

The group ``path`` or ``name`` contains the folder; a masked quote may take its place.
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
    if not match:
        return ()
    bare = (match["path"] or match["name"]).removeprefix("./").rstrip("/")
    return (f"{bare}/**",) if match["path"] else (f"{bare}/**", f"**/{bare}/**")
