"""Shapes of preferences: rows to read and to extend.

A preference is shown, but never enforced. Many are worded as decisions, plans or means to an end. Those count
if they have a reason or a comparison, and no date, sum or person, which would make them one event among
others.
"""

from agentx.synthesis.demands.tables.demand_row import Shape
from agentx.synthesis.demands.tables.vocabulary import compiled

PREFERENCES: tuple[Shape, ...] = (
    Shape(
        "i prefer",
        compiled(
            r"(?:\bi (?:also |really |strongly |generally |usually |always |typically |personally |much |do "
            r"|still |just |tend to |definitely )?prefer"
            r"|\bi(?:'ve| have) (?:always |long |generally )preferred|\b(?:someone|a person) who"
            r" (?:always |usually |generally )?prefers"
            r"|\bmy (?:\w+ )?preference is(?: for| to)?)\s+(?P<object>[^?]{4,})"
        ),
        "prefer",
        (
            ("choice", "candidate"),
            ("question !narrow !asks", "candidate"),
            ("!narrow !asks !conditional", "active"),
        ),
        "I prefer bullet points over paragraphs",
        "I prefer that",
        anywhere=True,
    ),
    Shape(
        "i would prefer",
        compiled(
            r"^i(?:'d| would) (?:really |much |generally )?(?:prefer|rather)(?: to| if you| you)?\s+"
            r"(?P<object>[^?]{4,})"
        ),
        "prefer",
        (("standing !narrow", "active"), ("you_frame universal !narrow !deictic", "candidate")),
        "I'd prefer British spelling from now on",
        "I'd prefer that",
    ),
    Shape(
        "i prioritize",
        compiled(
            r"(?:\bi (?:also |really |generally |usually |always |tend to )?|\bi(?:'ve| have)"
            r" (?:always |long )?been (?:\w+ )?|\bdecided to |\bsomeone who )"
            r"(?:prioriti[sz](?:e|es|ed|ing)|favou?r(?:s|ed)?)\s+(?P<object>[^?]{6,})"
        ),
        "prefer",
        (
            ("question !asks !narrow", "candidate"),
            ("!asks !narrow !past !deictic", "active"),
            ("!asks !narrow compared !event", "active"),
            ("!asks !narrow !event", "candidate"),
        ),
        "I prioritize readable code over short code",
        "should I prioritize it",
        anywhere=True,
    ),
    Shape(
        "my preference",
        compiled(
            r"\b(?:tak(?:e|ing) into account|consider(?:ing)?|given|remember|keep(?:ing)? in mind|respect"
            r"(?:ing|s)?|fits?|matches|based on|reflects?"
            r"|follow(?:ing)?|mind|as (?:stated|mentioned|described) in|in line with|because of|due to) "
            r"(?P<text>my (?:strong |personal |general |usual )?preference (?:for|of|to))\s+"
            r"(?P<object>[^?]{6,})"
        ),
        "prefer",
        (("!narrow", "active"),),
        "taking into account my preference for small commits",
        "does it change my preference for clear deadlines",
        anywhere=True,
    ),
    Shape(
        "as i prefer",
        compiled(
            r"^(?P<object>.{10,160}?),? (?:like|as|the way|which is what) i (?:always |usually "
            r"|generally )?prefer(?=\s*(?:[.,;!?]|$))"
        ),
        "prefer",
        (("!deictic", "active"),),
        "I'm writing short chapters like I prefer",
        "show the ones as I prefer them",
    ),
    Shape(
        "settled choice",
        compiled(
            r"\bi(?:'ve| have)? (?:now |just |already |always |finally )?(?:decided|chosen|chose|opted"
            r"|elected)(?: to| on| for)? "
            r"(?P<object>(?!not\b|between\b|if\b|whether\b|what\b|which\b|against\b)[^?]{6,})"
        ),
        "prefer",
        (
            ("question reason means !event !narrow", "candidate"),
            ("reason means !event !narrow", "active"),
            ("reason compared !event !narrow", "active"),
        ),
        "I've decided to use plain SQL over an ORM because of its clarity",
        "I chose the first one",
        anywhere=True,
    ),
    Shape(
        "means to an end",
        compiled(
            r"\bi(?:'m| am) (?:trying|aiming|hoping|planning) to (?P<object>(?:keep|balance|maintain|avoid"
            r"|stay|minimi[sz]e|maximi[sz]e|reduce|stick)\b"
            r"[^?]{5,120}? by (?:only )?(?:using|keeping|avoiding|choosing|preferring|sticking|relying"
            r"|limiting|writing)\b[^?]{5,})"
        ),
        "prefer",
        (("!dated", "active"),),
        "I'm trying to keep the build fast by using few dependencies",
        "I'm trying to keep the build green",
        anywhere=True,
    ),
    Shape(
        "inclined",
        compiled(
            r"\bi(?:'m| am) (?:considering|thinking of|leaning towards?|planning on)"
            r" (?P<object>(?!it\b|this\b|that\b)[^?]{6,})"
        ),
        "prefer",
        (("aims !event !narrow", "candidate"), ("compared reason !event !narrow", "candidate")),
        "I'm considering short chapters to avoid fatigue and improve the pace",
        "I'm considering a break",
        anywhere=True,
    ),
)
