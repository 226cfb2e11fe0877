"""Checks of rules in few words, and what they find."""

from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import evaluate_answer, evaluate_changes
from agentx.synthesis.memory.checks import DecoratorCheck, DependencyCheck, PathCheck, TextCheck

PYTHON = ("**/*.py",)


def forbid_path(paths, *, frozen=False):
    """Return a check that forbids writing files; with ``frozen``, also deleting them."""
    return (
        PathCheck(paths=paths, actions=("create", "change", "delete")) if frozen else PathCheck(paths=paths)
    )


def forbid_text(phrases, *, topic="", paths=(), answers=True, files=True):
    """Return a check that forbids phrases."""
    places = ("files",) * files + ("answers",) * answers
    return TextCheck(phrases=phrases, topic=topic, paths=paths, places=places)


def require_decorator(decorator, functions="", paths=PYTHON):
    """Return a check that demands a decorator."""
    return DecoratorCheck(decorator=decorator, functions=functions, paths=paths)


def require_import(*modules, forbidden=False, paths=None):
    """Return a check that demands an import, or forbids it in every language."""
    if paths is None:
        paths = () if forbidden else PYTHON
    return DependencyCheck(packages=modules, places=("imports",), paths=paths, required=not forbidden)


def check_write(items, path, before, after, *, message=""):
    """Return what a write breaks."""
    change = CheckedChange(path=path, before=before, after=after, message=message)
    return evaluate_changes(items, [change]).violations


def check_removal(items, path):
    """Return what the removal of a file breaks."""
    return evaluate_changes(items, [CheckedChange(path=path, before="", removes=True)]).violations


def check_answer(items, text, *, message=""):
    """Return what an answer breaks."""
    return evaluate_answer(items, text, message=message).violations
