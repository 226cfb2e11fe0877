"""Pipeline files that were made to hold readers up: a template or a path with stars is filled or refused."""

import pytest

from agentx.storage.errors import AgentXError
from agentx.synthesis.pipelines.definition.naming import path_pattern
from agentx.synthesis.pipelines.templates import MAX_WORK, fill

SPENT = f"{MAX_WORK:,} characters"
XY = "{% set a = 'xy' %}"
LIST = "{% set a = range(100000) | list %}"


def again(step, times):
    return f"{{% set a = {step} %}}" * times


def rounds(body):
    return f"{{% for i in range(90000) %}}{body}{{% endfor %}}"


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{% for i in range(10**9) %}x{% endfor %}", "a range has at most"),
        (rounds(rounds("x")), "loops run more than"),
        (XY + again("a + a", 40), SPENT),
        (XY + again("a ~ a", 40), SPENT),
        ("{% set a = 'xx' %}" + again("a | replace('x', a)", 9), SPENT),
        (XY + again("a | replace('', a)", 9), SPENT),
        (XY + again("a | join(a)", 9), SPENT),
        (XY + again("(a ~ a) | upper", 40), SPENT),
        ("{% set a = [1] %}" + again("a + a", 40), SPENT),
        ("{% set a = (1,) %}" + again("a + a", 40), SPENT),
        ("{% set a = [1] %}" + again("[a, a, a, a]", 20) + "{{ a }}", SPENT),
        ("{% set a = [1] %}" + again("[a, a, a, a]", 20) + "{{ a | string | length }}", SPENT),
        ("{% set a = {} %}" + again("{'x': a, 'y': a}", 30) + "{{ a }}", SPENT),
        ("{% set a = [1] %}" + again("[a, a] | sum(start=[])", 40), "adds numbers alone"),
        (XY + again("a + a", 19) + rounds("{{ a.count('q') }}"), SPENT),
        (XY + again("a + a", 19) + rounds("{{ a | upper | length }}"), SPENT),
        (XY + again("a + a", 19) + rounds("{{ a[:-1] | length }}"), SPENT),
        (XY + again("a + a", 19) + rounds("{% if 'q' in a %}{% endif %}"), SPENT),
        (XY + again("a + a", 18) + "{{ range(90000) | map('default', a) | map('upper') | list | length }}", SPENT),
        (LIST + rounds("{{ a | sort | length }}"), SPENT),
        (LIST + rounds("{% if -1 in a %}{% endif %}"), SPENT),
        (LIST + rounds("{% if -1 is in a %}{% endif %}"), SPENT),
        (LIST + rounds("{% if a[:] == a %}{% endif %}"), SPENT),
        (LIST + "{{ a | select('in', a) | list | length }}", SPENT),
        ("{% set a %}" + rounds("y" * 9_000) + "{% endset %}", SPENT),
        ("{% filter upper %}" + rounds("y" * 9_000) + "{% endfilter %}", SPENT),
    ],
)  # fmt: skip
def test_a_template_that_never_ends_or_grows_is_refused(template, told):
    with pytest.raises(AgentXError, match=told):
        fill(template, {})


def test_a_template_that_works_much_is_filled():
    chapters = [{"id": f"{n:04}", "text": "some words " * 50} for n in range(500)]
    template = "{% for one in all %}{{ one.id | int }} {{ one.text | upper | wordcount }}\n{% endfor %}"
    assert fill(template, {"all": chapters}).splitlines()[-1] == "499 100"
    assert fill("{{ a | replace('x', 'y') | length }}", {"a": "x" * 1_000_000}) == "1000000"


@pytest.mark.parametrize(
    "path", ["a*" * 2_000 + "b", "*" * 5_000 + "b", "**/" * 1_500 + "b", "**/*" * 1_000 + "b"]
)
def test_a_path_with_many_stars_is_matched_in_time(path):
    assert not path_pattern(path).fullmatch("a/" + "a" * 4_000)


def test_a_path_with_too_many_stars_is_refused_in_a_sentence():
    with pytest.raises(AgentXError, match="too many stars"):
        path_pattern("a*" * 100_000)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a/*.md", "a/b.md", True),
        ("a/*.md", "a/b/c.md", False),
        ("**/*.md", "c.md", True),
        ("a**", "a/b", True),
        ("a.*", "abc", False),
        ("é*", "éa", True),
        ("[a]*", "[a]b", True),
        ("*", "", True),
        ("*b", "a\nb", True),
        ("**b", "a\nb", False),
    ],
)
def test_stars_mean_what_they_meant(pattern, path, matches):
    assert path_pattern(pattern).fullmatch(path) is matches
