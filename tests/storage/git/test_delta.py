"""A delta makes its object again out of its base, and the base is the object that it resembles most."""

from hypothesis import given
from hypothesis import strategies as st

from agentx.storage.git.delta import MAX_DEPTH, Base, Bases, delta


def number(content, at):
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def applied(base, made):
    """Git's own reading of a delta (gitformat-pack)."""
    size, at = number(made, 0)
    assert size == len(base)
    wanted, at = number(made, at)
    out = b""
    while at < len(made):
        operation, at = made[at], at + 1
        if not operation & 0x80:
            out, at = out + made[at : at + operation], at + operation
            continue
        operands = []
        for bit in range(7):
            operands.append(made[at] if operation & 1 << bit else 0)
            at += bool(operation & 1 << bit)
        start, length = int.from_bytes(operands[:4], "little"), int.from_bytes(operands[4:], "little")
        length = length or 0x10000
        assert start + length <= len(base)
        out += base[start : start + length]
    assert len(out) == wanted
    return out


pieces = st.lists(
    st.sampled_from([b"", b"a", b"entry %d\n" * 9, bytes(range(256)), b"x" * 70_000]), max_size=9
)


@given(pieces, pieces)
def test_it_makes_the_object_again(base, target):
    first, second = b"".join(base), b"|".join(target)
    assert applied(first, delta(first, second)) == second


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_it_makes_any_bytes_again(base, target):
    assert applied(base, delta(base, target)) == target


def test_the_beginning_of_a_log_is_a_few_bytes():
    log = b"".join(b'{"seq":%d}\n' % seq for seq in range(5_000))
    assert len(delta(log, log[:30_000])) < 16


def test_a_file_that_was_edited_in_three_places_is_its_edits():
    lines = [b"line %04d of the file\n" % place for place in range(2_000)]
    edited = [b"edited!\n" if place in (10, 900, 1_800) else line for place, line in enumerate(lines)]
    assert len(delta(b"".join(lines), b"".join(edited))) < 150


def test_what_began_alike_is_the_base_and_no_chain_grows_too_long():
    bases, depths, root = Bases(), [], None
    for place in range(200):
        content = b"begins alike, in forty bytes and a few more" + bytes([place]) * 40 + bytes(range(200))
        found = bases.best(content, 0)
        base = found[0] if found else None
        made = Base(place + 1, base.depth + 1 if base else 0, content, (base.root or base) if base else None)
        root = root or made
        bases.add(made, content)
        depths.append(made.depth)
    assert max(depths) <= MAX_DEPTH
    assert depths.count(0) == 1


def test_what_deltas_stand_on_counts_too():
    bases = Bases()
    bases.add(Base(12, 0, b"x" * 100), b"x" * 100)
    assert bases.best(b"x" * 99, MAX_DEPTH) is None
    assert bases.best(b"x" * 99, MAX_DEPTH - 1)


def test_the_oldest_are_forgotten_before_memory_grows():
    bases, made = Bases(), []
    for place in range(200):
        content = bytes([place]) * (1 << 20)
        made.append(Base(place, 0, content))
        bases.add(made[-1], content)
    assert sum(len(base.content or b"") for base in made) <= 64 << 20
    assert made[0].content is None
    assert bases.best(bytes([199]) * (1 << 20), 0)[0] is made[-1]
