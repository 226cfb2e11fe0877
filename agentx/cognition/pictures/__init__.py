"""The pictures of the report, drawn by matplotlib as SVG.

May import: cognition, pipelines.drawing, storage.
"""

from agentx.cognition.overview import Overview
from agentx.cognition.pictures.canvas import styled
from agentx.cognition.pictures.decay_curves import decay_picture, memories_picture
from agentx.cognition.pictures.spending import judge_picture, latency_picture, tokens_picture
from agentx.cognition.pictures.triggers import pulse_picture, triggers_picture

_DRAWN = {
    "pulse": pulse_picture,
    "decay": decay_picture,
    "memories": memories_picture,
    "triggers": triggers_picture,
    "latency": latency_picture,
    "tokens": tokens_picture,
    "judge": judge_picture,
}


def pictures(seen: Overview) -> dict[str, str]:
    """Return all pictures that have data, as SVG, by name."""
    with styled():
        return {name: svg for name, draw in _DRAWN.items() if (svg := draw(seen))}
