"""Trees are edited as bytes, and are what Git itself makes of the same entries."""

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.git.objects import ObjectDamaged
from agentx.storage.git.trees import DIRECTORY, RawTreeEntry, edit, find

_OIDS = ["e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "0a20640020310031003000200031003400300061", "61" * 20]
_FILE = st.builds(RawTreeEntry, st.sampled_from([b"100644", b"100755", b"120000"]), st.sampled_from(_OIDS))
_FOLDER = st.builds(RawTreeEntry, st.just(DIRECTORY), st.sampled_from(_OIDS))
_NAMES = st.sampled_from([b"a", b"a.b", b"a-b", b"ab", b"a0", b"b", b"100644 a", "é".encode(), b"A"])
_CHANGES = st.dictionaries(_NAMES, st.one_of(st.none(), _FILE, _FOLDER))


def _sorted_as_git_does(entries):
    def place(item):
        return item[0] + b"/" if item[1].mode == DIRECTORY else item[0]

    rows = sorted(entries.items(), key=place)
    return b"".join(entry.mode + b" " + name + b"\0" + bytes.fromhex(entry.oid) for name, entry in rows)


@given(st.lists(_CHANGES, max_size=4))
def test_a_tree_that_was_edited_is_the_one_that_is_made_of_its_entries(steps):
    tree, entries = b"", {}
    for changes in steps:
        tree = edit(tree, changes)
        entries = {name: entry for name, entry in (entries | changes).items() if entry is not None}
        assert tree == _sorted_as_git_does(entries)
        assert {name: find(tree, name) for name in entries} == entries
    assert find(tree, b"not there") is None


def test_git_makes_the_same_tree(tmp_path):
    repo = pygit2.init_repository(str(tmp_path))
    blob = repo.create_blob(b"x")
    folder = repo.TreeBuilder()
    folder.insert("x", blob, pygit2.enums.FileMode.BLOB)
    below = folder.write()
    builder, tree = repo.TreeBuilder(), b""
    for name in ("lib", "lib.py", "lib-x", "é", "Z"):
        is_folder = name == "lib"
        mode = pygit2.enums.FileMode.TREE if is_folder else pygit2.enums.FileMode.BLOB_EXECUTABLE
        builder.insert(name, below if is_folder else blob, mode)
        entry = RawTreeEntry(DIRECTORY, str(below)) if is_folder else RawTreeEntry(b"100755", str(blob))
        tree = edit(tree, {name.encode(): entry})
    assert repo.read(builder.write())[1] == tree
    repo.free()


@pytest.mark.parametrize("tree", [b"x", b"100644 a", b"100644 a\0short"])
def test_a_tree_that_is_cut_off_is_told(tree):
    with pytest.raises(ObjectDamaged, match="ends in the middle"):
        find(tree, b"b")
