"""Recall of the turns that answer a question, among those of its conversation, by the product's own search."""

import json

from tests.compare.case import Case, Result
from tests.compare.driver import Message, NotItsPurpose

_K = 10


def recall(case: Case) -> Result:
    """The mean over the conversations of the mean over their questions, as ``make eval`` counts it."""
    if type(case.make(case.folder, "")).search is _nothing():
        raise NotItsPurpose
    if case.data is None:
        return {"skipped": "no data: give DATA=folder, with locomo/ in it"}
    conversations = json.loads(case.data.read_text())
    shares, asked = [], 0
    for number, one in enumerate(conversations):
        driver = case.open(case.folder / str(number))
        names = {}
        for name, speaker, text in one["turns"]:
            names.setdefault(text, name)
        driver.append_all([Message(speaker, text) for _, speaker, text in one["turns"]])
        driver.index()
        found = []
        for question, gold in one["questions"]:
            hits = list(dict.fromkeys(names.get(text, text) for text in driver.search(question, _K)))
            found.append(len(set(gold) & set(hits[:_K])) / len(gold))
        driver.close()
        asked += len(found)
        shares.append(sum(found) / len(found))
        if case.late:
            break
    return {
        "recall_at_10": sum(shares) / len(shares),
        "conversations": len(shares),
        "of": len(conversations),
        "questions": asked,
    }


def _nothing():
    from tests.compare.driver import Driver

    return Driver.search
