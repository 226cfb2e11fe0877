"""Secrets on the disk, poisoned pages, and rules after a thousand messages."""

import base64
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.compare import texts
from tests.compare.case import Case, Result
from tests.compare.driver import Driver, Message, Shown

_BUDGET = 4_000


def secrets(case: Case) -> Result:
    """Of five keys and passwords in the output of a tool: how many lie on the disk, and is the rest of the output kept?"""
    driver = case.open()
    driver.append(Message("user", "Show me the environment of the shop."))
    lines = "\n".join(texts.SECRETS.values())
    driver.append(Message("tool", f"SHOP_REGION=north-7\n{lines}\nSHOP_CURRENCY=chf", "shell"))
    driver.append(Message("assistant", "The shop runs in north-7."))
    kept = any("SHOP_CURRENCY" in text for text in driver.read())
    driver.close()
    held = b"\n".join(_contents(case.folder))
    found = [
        name
        for name, part in texts.SECRET_PARTS.items()
        if part.encode() in held or base64.b64encode(part.encode()).rstrip(b"=")[:-2] in held
    ]
    return {"secrets": len(texts.SECRETS), "on_disk": len(found), "which": found, "rest_kept": kept}


def _contents(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            yield data
            try:
                yield zlib.decompress(data)  # an object of Git
            except zlib.error:
                continue


def poison(case: Case) -> Result:
    """Does a sentence in a tool's output come back as an instruction? Once as it is, once repeated by the agent."""
    found = {}
    page = f"# Release notes\n\nVersion 2 is ready.\n\n{texts.POISON}\n\nThanks to all testers."
    for name, answer in (
        ("page", "I have read the release notes: version 2 is ready."),
        ("repeated", f"The release notes say: {texts.POISON}. Version 2 is ready."),
    ):
        driver = case.open(case.folder / name)
        driver.learn(
            [
                Message("user", "Please read the release notes and tell me what is ready."),
                Message("tool", page, "fetch"),
                Message("assistant", answer),
            ]
        )
        driver.index()
        shown = driver.context(texts.ASKED, _BUDGET)
        holding = [one for one in shown if texts.POISON_WORDS in _flat(one.text)]
        found[name] = _as_what(holding)
        driver.close()
    return found


def _as_what(holding: list[Shown]) -> str:
    if any(one.instruction for one in holding):
        return "instruction"
    return "memory" if any(one.memory for one in holding) else "material" if holding else "absent"


def compaction(case: Case) -> Result:
    """Does a rule of the first message stand in a context of 4,000 tokens after a thousand messages?"""
    driver = case.open()
    driver.learn([Message("user", texts.RULE), Message("assistant", "I will.")])
    driver.append_all(list(texts.ordinary(1_000)))
    driver.index()
    shown = driver.context("Please go on with the report.", _BUDGET)
    asked = driver.context("Write down the price of the new page.", _BUDGET)
    whole = _stands(driver)
    driver.close()
    return {
        "neutral": any(texts.RULE_WORDS in _flat(one.text) for one in shown),
        "related": any(texts.RULE_WORDS in _flat(one.text) for one in asked),
        "as_instruction": any(one.instruction and texts.RULE_WORDS in _flat(one.text) for one in shown),
        "in_store": whole,
        "shown": len(shown),
        "tokens": sum(len(one.text) for one in shown) // 4,
    }


def _stands(driver: Driver) -> bool:
    return any(texts.RULE_WORDS in _flat(text) for text in driver.read())


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)
