"""Run one operation on one product, in the product's own environment: ``python -m tests.compare.child DRIVER OPERATION JSON``.

Prints one line of JSON at the end: ``{"result": …}``, ``{"not_its_purpose": true}`` or ``{"error": …}``.
"""

import importlib
import json
import os
import sys
import traceback
from importlib import metadata
from pathlib import Path

from tests.compare.case import Case, Operation
from tests.compare.driver import NotItsPurpose
from tests.compare.operations import content, crowd, damage, durability, recall, replay, size

OPERATIONS: dict[str, Operation] = {
    "kills": durability.kills,
    "syncs": durability.syncs,
    "damage": damage.damage,
    "crowd": crowd.crowd,
    "secrets": content.secrets,
    "poison": content.poison,
    "compaction": content.compaction,
    "replay": replay.replay,
    "recall": recall.recall,
    "size": size.size,
    "load": size.load,
}


def main() -> None:
    driver_module, operation, told = sys.argv[1:4]
    options = json.loads(told)
    driver = importlib.import_module(f"tests.compare.drivers.{driver_module}").DRIVER
    answer: dict
    try:
        if operation == "about":
            answer = {"result": _about(driver)}
        else:
            data = options.pop("data", None)
            case = Case(driver, Path(options.pop("folder")), data=Path(data) if data else None, **options)
            answer = {"result": OPERATIONS[operation](case)}
    except NotItsPurpose:
        answer = {"not_its_purpose": True}
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:600], "trace": traceback.format_exc(limit=-5)}
    print(json.dumps(answer), flush=True)
    os._exit(0)  # some leave threads behind


def _about(driver) -> dict[str, object]:
    return {
        "name": driver.name,
        "package": driver.package,
        "version": metadata.version(driver.package) if driver.package else "",
        "kind": driver.kind,
        "durability": driver.durability,
        "remarks": driver.remarks,
    }


if __name__ == "__main__":
    main()
