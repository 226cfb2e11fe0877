"""The row type of the tables of demands."""

import re
from typing import NamedTuple

from agentx.synthesis.demands.tables.vocabulary import Certainty, Modality


class Shape(NamedTuple):
    """One shape of a demand.

    Attributes:
        name: Used in tests and explanations.
        pattern: Matched at the beginning of a clause without its lead-ins; if ``anywhere``, searched in the
            clause. Its groups: ``verb`` must be a verb's base form (``does``: any form), features are
            searched in ``object``, ``not`` turns a must into a must not, and ``text`` is where the demand
            begins.
        modality: Its modality.
        grades: Tried in order: the features that must all be present (``!name``: absent), and the resulting
            certainty.
        takes: A clause that it must accept.
        leaves: A clause that it must not accept.
        anywhere: Whether the demand may begin inside the clause; its text then begins there.
    """

    name: str
    pattern: re.Pattern[str]
    modality: Modality
    grades: tuple[tuple[str, Certainty], ...]
    takes: str
    leaves: str
    anywhere: bool = False
