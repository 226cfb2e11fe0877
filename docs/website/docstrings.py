"""A griffe extension: docstrings as the code has them, in the Markdown that the API page needs."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:meth|func|class|attr|mod|data|exc):`~?(?P<name>[\w.]+)`")
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Turn Sphinx roles into links or code, and doctests into fenced examples."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is None:
            return
        text = ROLE.sub(lambda found: _reference(found["name"], obj), obj.docstring.value)
        obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def _reference(name: str, obj: griffe.Object) -> str:
    """Return a link to a public member of the object's class, and code for anything else."""
    owner = obj if obj.is_class else obj.parent
    if owner is not None and owner.is_class and name in owner.members and not name.startswith("_"):
        return f"[`{name}`][{owner.path}.{name}]"
    return f"`{name}`"
