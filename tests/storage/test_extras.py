"""What a feature says when the extra that it needs is missing or broken."""

import pytest

from agentx.storage.errors import AgentXError
from agentx.storage.extras import EXTRAS, REPORT, Extra, ExtraMissing, needs


class Refused(AgentXError):
    """An error of a feature."""


def test_a_failed_import_names_the_command_the_reason_and_what_happens_without():
    with pytest.raises(ExtraMissing) as caught, needs(REPORT):
        import no_such_library  # noqa: F401
    assert str(caught.value) == (
        "The pictures of `agentx agent cognition report` need pip install 'agentx-workspace[report]' "
        "(No module named 'no_such_library'). Without it, the logs of a session have its figures."
    )


def test_a_library_that_is_installed_and_cannot_be_loaded_is_reported_as_the_features_own_error():
    with (
        pytest.raises(Refused, match=r"\[report\]' \(libfreetype.so.6: no such file\)"),
        needs(REPORT, Refused),
    ):
        raise ImportError("libfreetype.so.6: no such file")


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError), needs(REPORT):
        1 / 0


def test_packages_are_missing_by_their_own_names():
    extra = Extra("some", ("pytest", "no-such-package"), "Things", "nothing happens")
    assert extra.missing() == ("no-such-package",)
    assert [extra.name for extra in EXTRAS if extra.missing()] == []  # the checkout has them all
