"""Harm to what is valid: bytes flipped, cut, doubled, swapped and spliced, and what parsers stumble over put in between."""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from .targets import SEAL

PIECES = (
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xed\xa0\x80",
        b'"',
        b"\\",
        b"\\ud800",
        b"{}",
        b"null",
    ),
    *(b"-1", b"0", b"9" * 5_000, b"1e999", b"18446744073709551616", b"-9223372036854775809", b"NaN", SEAL),
    *(b"[" * 3_000, b'{"a":' * 3_000, b',"data":', b'","hash":"', b"../", b"/", b" ", b"\t", b"\xe2\x80\x8b"),
)
"""What was seen to break one parser or another."""

Harm = Callable[[bytes], bytes]


def _flip(at: int, mask: int) -> Harm:
    def harm(content: bytes) -> bytes:
        place = at % max(len(content), 1)
        return (
            content[:place] + bytes(byte ^ mask for byte in content[place : place + 1]) + content[place + 1 :]
        )

    return harm


def _splice(at: int, gone: int, piece: bytes) -> Harm:
    def harm(content: bytes) -> bytes:
        place = at % (len(content) + 1)
        return content[:place] + piece + content[place + gone :]

    return harm


def _cut(at: int) -> Harm:
    return lambda content: content[: at % (len(content) + 1)]


def _repeat(at: int, length: int, to: int) -> Harm:
    def harm(content: bytes) -> bytes:
        place, target = at % (len(content) + 1), to % (len(content) + 1)
        return content[:target] + content[place : place + length] + content[target:]

    return harm


def _of_lines(work: Callable[[list[bytes], int, int], None], first: int, second: int) -> Harm:
    def harm(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        if lines:
            work(lines, first % len(lines), second % len(lines))
        return b"".join(lines)

    return harm


def _swap(lines: list[bytes], first: int, second: int) -> None:
    lines[first], lines[second] = lines[second], lines[first]


def _double(lines: list[bytes], first: int, second: int) -> None:
    lines.insert(second, lines[first])


def _drop(lines: list[bytes], first: int, _second: int) -> None:
    del lines[first]


_PLACE = st.integers(0, 1 << 16)
_PIECE = st.sampled_from(PIECES) | st.binary(max_size=12)
_HARM = st.one_of(
    st.builds(_flip, _PLACE, st.integers(1, 255)),
    st.builds(_splice, _PLACE, st.integers(0, 40), _PIECE),
    st.builds(_cut, _PLACE),
    st.builds(_repeat, _PLACE, st.integers(1, 400), _PLACE),
    st.builds(_of_lines, st.sampled_from((_swap, _double, _drop)), _PLACE, _PLACE),
)


def harmed(valid: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Valid inputs, none to some harm done to each, and now and then bytes that are nothing at all."""

    def apply(content: bytes, harms: list[Harm]) -> bytes:
        for harm in harms:
            content = harm(content)
        return content

    return st.builds(apply, st.sampled_from(list(valid)), st.lists(_HARM, max_size=4)) | st.binary(
        max_size=60
    )
