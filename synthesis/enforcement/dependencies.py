"""Checks of dependencies: packages in manifests, commands and imports."""

import re
from collections.abc import Iterator

from agentx.synthesis.enforcement.breaches import Breach, CheckedChange, Side
from agentx.synthesis.enforcement.imports import ECOSYSTEMS, imports_of, needs_imports
from agentx.synthesis.enforcement.packages.manifests import is_manifest, requirements_in
from agentx.synthesis.enforcement.packages.package_commands import installed
from agentx.synthesis.enforcement.packages.requirements import (
    Requirement,
    imports,
    is_everything,
    may_name,
    misfit,
    named_by,
    normalised,
)
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.enforcement.syntax_trees import language_of
from agentx.synthesis.memory.checks import DependencyCheck

_INSTALLERS = frozenset(("pip", "setuptools", "wheel", "npm", "pnpm", "yarn", "corepack"))
_INSTALLS = re.compile(r"\b(?:install|add|i|in|ins|isntall|get|require|pull|run|create|download)\b")


def broken_dependencies(check: DependencyCheck, change: CheckedChange) -> Iterator[Breach]:
    """Yield a breach for each package that is added, or that is missing though it is required."""
    if change.after is None:
        return
    ecosystem = ECOSYSTEMS.get(language_of(change.path), "") if "imports" in check.places else ""
    if ecosystem and (not check.ecosystems or ecosystem in check.ecosystems):
        yield from _imports(check, change, ecosystem)
    if "manifests" in check.places and not check.required and is_manifest(change.path):
        yield from _manifest(check, change)


def installed_dependencies(check: DependencyCheck, command: str) -> Iterator[Breach]:
    """Yield a breach for each package that a command line installs."""
    if "commands" not in check.places or check.required or not _INSTALLS.search(command):
        return
    for one, manifest in installed(command):
        if check.paths and not (manifest and matches(check.paths, manifest)):
            continue
        if not _is_about(check, one) or (manifest and matches(check.exceptions, manifest, unread=False)):
            continue
        if is_everything(check) and normalised(one.name) in _INSTALLERS:
            continue
        wrong = misfit(one, check.versions) if check.versions else "may not be added"
        if wrong:
            unknown = not manifest and (is_everything(check) or bool(check.versions))
            doubt = f"{one.name} may not become a dependency of the project." if unknown else ""
            yield Breach(reason=f"{one.name} {wrong}.{_instead(check)}", doubt=doubt)


# --- manifests ----------------------------------------------------------------------------------------------


def _manifest(check: DependencyCheck, change: CheckedChange) -> Iterator[Breach]:
    if not is_everything(check) and not any(
        may_name(package, _plain(change, "after")) for package in check.packages
    ):
        return
    after, before = _requirements(change, "after"), _requirements(change, "before")
    if after is None or before is None:
        return
    names = {(one.ecosystem, normalised(one.name)) for one in before}
    known = {(one.ecosystem, normalised(one.name), one.version) for one in before}
    for one in after:
        key = one.ecosystem, normalised(one.name)
        if (check.versions and (*key, one.version) in known) or (not check.versions and key in names):
            continue
        wrong = misfit(one, check.versions) if check.versions else "may not be added"
        if wrong and _is_about(check, one):
            place = f"line {one.line} of {change.path}" if one.line else change.path
            yield Breach(reason=f"{one.name} in {place} {wrong}.{_instead(check)}", line=one.line)


def _requirements(change: CheckedChange, side: Side) -> tuple[Requirement, ...] | None:
    """Return what one side of a manifest asks for; ``None`` if it is broken."""
    text = change.text(side)
    return change.once(
        ("requirements", side), lambda: requirements_in(change.path, text) if text.strip() else ()
    )


def _is_about(check: DependencyCheck, one: Requirement) -> bool:
    if check.ecosystems and one.ecosystem not in check.ecosystems:
        return False
    if is_everything(check) and (not one.is_tool or one.ecosystem in check.ecosystems):
        return True
    return not is_everything(check) and named_by(check, one.name, one.ecosystem)


def _instead(check: DependencyCheck) -> str:
    return f" Use {check.instead} instead." if check.instead else ""


# --- imports ------------------------------------------------------------------------------------------------


def _imports(check: DependencyCheck, change: CheckedChange, ecosystem: str) -> Iterator[Breach]:
    for package in check.packages:
        if package == "*":
            continue  # modules of the language's library are imported, too
        lines = _lines(package, change, "after", ecosystem)
        if check.required:
            if not lines and needs_imports(change):
                yield Breach(reason=f"{change.path} does not import {package}.", line=1)
        elif not check.versions and lines and len(lines) > len(_lines(package, change, "before", ecosystem)):
            reason = f"Line {lines[0]} of {change.path} imports {package}.{_instead(check)}"
            yield Breach(reason=reason, line=lines[0])


def _lines(package: str, change: CheckedChange, side: Side, ecosystem: str) -> list[int]:
    if not may_name(package, _plain(change, side)):
        return []
    return [line for module, line in imports_of(change, side) if imports(package, module, ecosystem)]


def _plain(change: CheckedChange, side: Side) -> str:
    return change.once(("plain", side), change.text(side).casefold)
