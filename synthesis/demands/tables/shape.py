"""What a row of the tables of demands looks like."""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.vocabulary import Certainty, Modality


class Shape(NamedTuple):
    """One shape of a demand.

    Attributes:
        name: For tests and explanations.
        pattern: Matched at the beginning of a clause without its lead-ins; for ``anywhere`` searched in it. Its groups:
            ``verb`` must be a verb's base form (``does``: any form), ``object`` is what features are looked for in,
            ``not`` turns a must into a must not, and ``text`` is where the demand begins.
        modality: What it demands.
        grades: Tried in order: the features that must all be there (``!name``: must not), and the certainty they give.
        takes: A clause that it takes.
        leaves: A clause that it must leave alone.
        anywhere: Whether the demand may begin inside the clause; its text then begins there.
    """

    name: str
    pattern: re.Pattern[str]
    modality: Modality
    grades: tuple[tuple[str, Certainty], ...]
    takes: str
    leaves: str
    anywhere: bool = False
