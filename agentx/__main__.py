"""``python -m agentx`` is ``agentx``."""

import sys

from agentx.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
