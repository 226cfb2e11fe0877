"""Compare AgentX with other products, each through its own interface: ``python -m tests.compare [PEER …]``.

Installs each product into an environment of its own, runs the operations of :mod:`tests.compare.operations` there, and writes a
table. What was measured is kept, so that a second call goes on where the first stopped. A product that fails is reported with its
error, and the others go on.
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from tests.compare.endpoint import serving
from tests.compare.peers import Peer, install, peers
from tests.compare.report import markdown, terminal, write_page
from tests.compare.runs import OPERATIONS, Runs, conversations
from tests.figures import machine

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"


def main() -> None:
    """Parse the command line, and compare."""
    parser = argparse.ArgumentParser(prog="make compare", description=__doc__)
    parser.add_argument("peer", nargs="*", help="which of peers.toml; by default all")
    parser.add_argument(
        "--operations", nargs="+", choices=OPERATIONS, default=list(OPERATIONS), metavar="OPERATION"
    )
    parser.add_argument("-n", "--n", type=int, default=50, help="kills of each product")
    parser.add_argument("--records", type=int, default=10_000, help="records of the large store")
    parser.add_argument(
        "--limit-s", type=float, default=240, help="an operation ends with what it has after so long"
    )
    parser.add_argument(
        "--data", type=Path, help="the folder with locomo/, as for make eval; recall is skipped without it"
    )
    parser.add_argument(
        "--cache", type=Path, default=_cache(), help="where environments and results are kept"
    )
    parser.add_argument("--again", action="store_true", help="measure again what is kept")
    parser.add_argument("--kept", action="store_true", help="measure nothing; show what is kept")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/comparison.md")
    wanted = parser.parse_args()
    wanted.cache.mkdir(parents=True, exist_ok=True)
    chosen = peers(wanted.peer)
    with serving() as address:
        runs = Runs(
            cache=wanted.cache.resolve(),
            address=address,
            n=wanted.n,
            records=wanted.records,
            limit_s=wanted.limit_s,
            data=conversations(wanted.data, wanted.cache) if wanted.data else None,
            again=wanted.again,
            kept_only=wanted.kept,
        )
        found = [_compared(peer, runs, wanted.operations) for peer in chosen]
    shutil.rmtree(runs.scratch, ignore_errors=True)
    made = {
        "machine": machine(),
        "n": wanted.n,
        "records": wanted.records,
        "limit_s": wanted.limit_s,
        "peers": found,
    }
    (wanted.cache / "comparison.json").write_text(json.dumps(made, indent=1))
    (wanted.cache / "comparison.md").write_text(markdown(made))
    terminal(made)
    if wanted.write_docs:
        write_page(PAGE, markdown(made))
    print(f"{wanted.cache}/comparison.json, comparison.md", file=sys.stderr)


def _compared(peer: Peer, runs: Runs, operations: list[str]) -> dict:
    print(f"{peer.key}: installing", file=sys.stderr, flush=True)
    installed = install(peer, runs.cache)
    if installed.error:
        print(f"{peer.key}: {installed.error}", file=sys.stderr)
        return {"key": peer.key, "packages": peer.packages, "failed": installed.error}
    if not peer.driver:
        return {"key": peer.key, "packages": peer.packages, "failed": "it installs; it has no driver yet"}
    about = runs.run(peer, installed.python, "about")
    if "result" not in about:
        return {"key": peer.key, "packages": peer.packages, "failed": about["error"]}
    results = {name: runs.run(peer, installed.python, name) for name in operations}
    return {"key": peer.key, "packages": peer.packages, **about["result"], "results": results}


def _cache() -> Path:
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(above) / "agentx-compare"


if __name__ == "__main__":
    main()
