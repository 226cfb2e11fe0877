"""A published index ranks as the reference does, is changed atomically, and by nobody who is late."""

import msgspec
import numpy as np
import pytest

from agentx.storage.index.lance_table import PublishedByAnother
from agentx.storage.index.memory_index import InMemoryIndex
from agentx.storage.index.port import Chunk, Filter
from agentx.storage.index.published import Changes, PublishedIndexes, PublishFailed

AT = "2026-11-24T12:00:00Z"
WORDS = ("order", "region", "sum", "retry", "payment", "walrus", "otter", "north", "page", "cache")


@pytest.fixture
def indexes(tmp_path):
    return PublishedIndexes(str(tmp_path / "published"), {})


def chunk(number, generator, path=""):
    text = " ".join(generator.choice(WORDS, 6))
    return Chunk(id=f"c{number}", kind="artifact" if path else "message", text=text, path=path, seq=number)


def vector(generator):
    made = generator.normal(size=8).astype(np.float32)
    return made / np.linalg.norm(made)


def changed(index, *, seq, **marks):
    changes = Changes(index.mark.meta)
    changes.write_meta("seq", f"{seq} hash{seq}")
    return changes


def files(root):
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def test_it_ranks_exactly_as_the_reference_after_edits_in_several_commits(indexes):
    """The same operations go to both; every query gives the same scores."""
    generator, reference = np.random.default_rng(7), InMemoryIndex()
    for round_ in range(3):
        index = indexes.made("one")
        changes = changed(index, seq=10 * round_ + 10)
        for one in (changes, reference):
            one.close_chunks(path=f"f{round_ - 1}.py", seq=10 * round_)
        made = [chunk(100 * round_ + n, generator, f"f{round_}.py" if n % 3 else "") for n in range(60)]
        vectors = [vector(generator) for _ in made]
        for one in (changes, reference):
            one.put(made)
            one.embed([each.id for each in made], vectors)
        index.commit(changes, AT)
    index = indexes.open("one")
    assert (index.mark.seq, index.mark.docs) == (30, reference.statistics([]).totals()[0])
    for where in (Filter(), Filter(as_of=15), Filter(kinds=("message",)), Filter(path="f2.py")):
        for query in ("order region", "walrus", "payment retry cache", "otter otter north"):
            ours, theirs = (one.search_text(query, 10, where) for one in (index, reference))
            assert [one.score for one in ours] == [one.score for one in theirs]  # ties beyond these differ
        asked = vector(generator)
        ours, theirs = (one.search_vector(asked, 10, where) for one in (index, reference))
        assert [one.chunk.id for one in ours] == [one.chunk.id for one in theirs]


def test_who_prepared_changes_before_another_committed_changes_nothing(indexes):
    """A publisher that was frozen comes back, before and after the table was compacted."""
    for compacts in (False, True):
        late, first = indexes.made("one"), indexes.made("one")
        for index, text in ((first, "The walrus sleeps."), (late, "The otter swims.")):
            index.changes = changed(index, seq=5 if index is late else 9)
            index.changes.put([Chunk(id=f"{text}{compacts}", kind="message", text=text)])
        first.commit(first.changes, AT, purge=compacts)
        with pytest.raises((PublishedByAnother, PublishFailed)):
            late.commit(late.changes, AT)
        now = indexes.open("one")
        assert now.mark.seq == 9
        assert now.search_text("otter", 5, Filter()) == []
        assert now.search_text("walrus", 5, Filter()) != []


def test_a_reader_stays_with_the_version_that_it_opened(indexes):
    index = indexes.made("one")
    changes = changed(index, seq=1)
    changes.put([Chunk(id="a", kind="message", text="The walrus sleeps.")])
    index.commit(changes, AT)
    reader, index = indexes.open("one"), indexes.open("one")
    changes = changed(index, seq=2)
    changes.put([Chunk(id="a", kind="message", text="The otter swims.")])
    index.commit(changes, AT)
    assert reader.mark.seq == 1
    assert [one.chunk.text for one in reader.search_text("walrus otter", 5, Filter())] == [
        "The walrus sleeps."
    ]
    assert [one.chunk.text for one in indexes.open("one").search_text("walrus otter", 5, Filter())] == [
        "The otter swims."
    ]


def test_what_is_removed_or_purged_is_in_no_file(indexes, tmp_path):
    index = indexes.made("one")
    changes = changed(index, seq=1)
    changes.put([Chunk(id="a", kind="message", text="The zanzibar walrus.")])
    index.commit(changes, AT)
    assert b"zanzibar" in files(tmp_path)
    index = indexes.open("one")
    changes = Changes({})
    changes.clear()
    changes.write_meta("seq", "2 hash2")
    changes.put([Chunk(id="b", kind="message", text="The quagga walks.")])
    index.commit(changes, AT, purge=True)
    assert b"zanzibar" not in files(tmp_path)
    assert b"quagga" in files(tmp_path)
    assert indexes.open("one").search_text("quagga", 5, Filter())
    assert indexes.remove("one", AT)
    assert b"quagga" not in files(tmp_path)
    assert not indexes.remove("one", AT)
    assert indexes.open("one").mark.seq == 0


def test_a_damaged_index_is_reported_and_can_be_removed(indexes, tmp_path):
    index = indexes.made("one")
    changes = changed(index, seq=1)
    changes.put([Chunk(id="a", kind="message", text="The walrus sleeps.")])
    index.commit(changes, AT)
    for path in (tmp_path / "published" / "one.lance" / "data").iterdir():
        path.write_bytes(b"lies")
    with pytest.raises(PublishFailed):
        PublishedIndexes(str(tmp_path / "published"), {}).open("one")
    assert indexes.remove("one", AT)
    assert indexes.open("one") is None


def test_forged_figures_of_an_index_fail_no_search(indexes):
    index = indexes.made("one")
    changes = changed(index, seq=1)
    changes.put([Chunk(id="a", kind="message", text="The walrus sleeps.")])
    index.commit(changes, AT)
    index = indexes.open("one")
    for docs, length in ((-1, -9), (-7, 3), (0, 0)):
        index.mark = msgspec.structs.replace(index.mark, docs=docs, length=length)
        assert [hit.chunk.id for hit in index.search_text("walrus", 5, Filter())] == ["a"]
