"""``python -m agentx`` is ``agentx``."""

import sys

from agentx.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
