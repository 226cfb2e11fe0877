"""Where the measured code lies: in this checkout, or in a directory that another revision was extracted to."""

from pathlib import Path

import agentx

ROOT = Path(agentx.__file__).parents[1]
