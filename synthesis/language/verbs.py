"""Forms of English verbs."""

from agentx.synthesis.language.words import vocabulary

# fmt: off
_NO_BASE_VERB = vocabulary("""
    a an the this that these those my your our his her its their i you he she it we they one two not no of in
    on at to for with from by as and or but if so such same been had has have was were is are am be's did done
    does got gotten seen saw knew known thought felt heard found went gone came took taken made gave given
    wrote written ran said told met left lost kept won held stood understood paid spent built sent meant
    read's ready good great nice bad fun easy hard best better worse more less most least very too quite
    really just only also still yet again before after even mind there here when where what who why how
    because nothing something anything everything people someone anyone everyone true false null able happy
    sad sure right wrong available green red open empty late early there's it's i'm i've we've you're they're
    will would can could should may might must shall
""")
"""Words after which no order follows: "always the same error", "never got it to work"."""

_BASE_VERBS = vocabulary("focus alias bias need embed feed seed proceed exceed speed shed bring ping string")
"""Orders that end like a third person or a participle."""
# fmt: on


def is_base_verb(word: str) -> bool:
    """Return whether a word can be an order: no participle, third person or function word.

    >>> is_base_verb("answer"), is_base_verb("fails"), is_base_verb("got")
    (True, False, False)
    """
    low = word.lower()
    if low in _NO_BASE_VERB or not low.isascii():
        return False
    return low in _BASE_VERBS or low.endswith("ss") or not low.endswith(("s", "ed", "ing"))


# fmt: off
_IRREGULAR = {
    form: row[0]
    for row in map(str.split, """
        beat beaten|begin began begun|bite bit bitten|blow blew blown|break broke broken
        bring brought|build built|buy bought|catch caught|choose chose chosen|come came|deal dealt
        dig dug|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen
        feed fed|feel felt|fight fought|find found|fly flew flown|forget forgot forgotten
        get got gotten|give gave given|go went gone|grow grew grown|hear heard|hide hid hidden
        hold held|keep kept|know knew known|lead led|lend lent|lose lost|make made|mean meant
        meet met|pay paid|ride rode ridden|ring rang rung|run ran|say said|see saw seen|sell sold
        send sent|shake shook shaken|shine shone|shoot shot|show shown|sing sang sung|sit sat
        sleep slept|speak spoke spoken|spend spent|stand stood|steal stole stolen|swim swam swum
        take took taken|teach taught|tell told|think thought|throw threw thrown|wake woke woken
        wear wore worn|win won|write wrote written
    """.replace("\n", "|").split("|"))
    for form in row[1:]
}
# fmt: on


def base_of(word: str) -> str:
    """Return the base of an irregular verb form; any other word unchanged.

    >>> base_of("Sold"), base_of("moved")
    ('sell', 'moved')
    """
    return _IRREGULAR.get(word.casefold(), word)
