"""Of a text that grows behind its end only what is new is read, and what was found is what the whole text holds."""

from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.pipelines.proving.growing import Growing
from agentx.synthesis.pipelines.proving.markdown import Section, sections

PIECES = [
    "# Terms\n", "## Chapter 1\n", "### *Part* # of it #\n", "#\n", "Under\n", "===\n", "---\n", "- **a**: b\n", "\n", "```\n",
    "~~~\n", "    # code\n", "# no end", "\r\n", "plain", "\ufeff", "* * *\n",
]  # fmt: skip


def _seen(section: Section) -> tuple[int, int, tuple[str, ...], tuple[str, ...], int]:
    return section.line, section.level, section.above, section.own, section.first


@given(st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))))
def test_what_is_read_bit_by_bit_is_what_the_whole_text_holds(parts):
    text, growing = "", Growing(lambda section: [_seen(section)])
    for is_another, part in parts:
        text = part if is_another else text + part
        assert list(growing.of(text)) == [_seen(section) for section in sections(text)]


def test_a_section_is_read_again_only_while_it_is_the_last():
    read: list[str] = []
    growing = Growing(lambda section: read.append(section.title) or [section.title])
    text = "# Terms\n"
    for number in range(1, 6):
        text += f"\n## Chapter {number}\n\n- **a{number}**: b\n"
        found = growing.of(text)
    assert found == ("", "Terms", *(f"Chapter {number}" for number in range(1, 6)))
    assert [read.count(f"Chapter {number}") for number in range(1, 6)] == [2, 2, 2, 2, 1]
    growing.of("another text\n")
    assert growing.of(f"{text}more\n") == found
    assert [read.count(f"Chapter {number}") for number in range(1, 6)] == [2, 2, 2, 2, 2]
