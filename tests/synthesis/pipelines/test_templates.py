"""Templates say values, choose and repeat; a name that there is not, or work without an end, is refused."""

import pytest

from agentx.synthesis.pipelines import templates
from agentx.synthesis.pipelines.templates import MAX_FILLED, TemplateInvalid, fill, names_in

VALUES = {
    "chapter": {"id": "03", "items": "a key named like a method"},
    "words": "200",
    "files": {"source-map": {"body": "# Map"}},
    "list": list(range(400)),
    "long": "word " * 1_000,
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("no { template", "no { template"),
        ("{{ chapter.id }} {{ chapter.items }}", "03 a key named like a method"),
        ("{{ files['source-map'].body }}", "# Map"),
        ("{{ words | int * 2 }} {{ 7 % 4 }} {{ 2 ** 10 }}", "400 3 1024"),
        ("{% for x in range(3) %}{{ x }}{{ ',' if not loop.last }}{% endfor %}", "0,1,2"),
        ("{{ chapter.note | default('none') }}{% if more is defined %}!{% endif %}", "none"),
        ("{{ long.split()[0].upper() }}", "WORD"),
        ("{% for x in list %}{% for y in range(2) %}{% endfor %}{% endfor %}end", "end"),
    ],
)
def test_a_template_is_filled(template, text):
    assert fill(template, VALUES) == text


def test_braces_in_a_value_mean_nothing():
    assert fill("{{ body }}", {"body": "{{ secret }} {% if %}"}) == "{{ secret }} {% if %}"


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ chaptr }}", "undefined name 'chaptr'"),
        ("{{ chapter.name }}", "undefined key 'name'; known: id, items"),
        ("a\n{{ open", r"invalid template \(line 2\)"),
        ("{{ ''.__class__ }}", "undefined name '__class__'"),
        ("{{ self._TemplateReference__context }}", "undefined name '_TemplateReference__context'"),
        ("{% include 'file' %}", "{% include %} is not allowed"),
        ("{% macro f() %}{% endmacro %}", "{% macro %} is not allowed"),
        ("{% for x in list recursive %}{{ loop(list) }}{% endfor %}", "recursive loops are not allowed"),
        ("{% for x in range(10**9) %}{% endfor %}", "a range has at most 100,000 numbers"),
        ("{% for x in list %}{% for y in list %}{% endfor %}{% endfor %}", "its loops run more than 100,000 times"),
        ("{{ 'x' * 10**10 }}", r"operands of `\*` are too large"),
        ("{{ 9 ** 99 }}", r"operands of `\*\*` are too large"),
        ("{{ '%99999999999d' % 1 }}", "operands of `%` are too large"),
        ("{{ 'x'.ljust(10**10) }}", "undefined name 'ljust'"),
        ("{{ '{:>9999999999}'.format(1) }}", "it calls a function that is not allowed"),
        ("{{ list.append(1) }}", "undefined name 'append'"),
        ("{{ range.__globals__ }}", "undefined name '__globals__'"),
        ("{{ list | random }}", "No filter named 'random'"),
        ("{% for x in list %}{{ long }}{{ long }}{% endfor %}", f"longer than {MAX_FILLED:,} characters"),
        ("{{ words > 3 }}", "not supported between instances of 'str' and 'int'"),
        ("{{ 1 // 0 }}", "by zero"),
    ],
)  # fmt: skip
def test_what_cannot_be_filled_is_refused(template, told):
    with pytest.raises(TemplateInvalid, match=told):
        fill(template, VALUES)


def test_the_names_that_a_template_needs_are_known_without_filling_it():
    template = "{{ a.b }}{{ a['c'] }}{% for x in d %}{{ x.e }}{% endfor %}{{ f | default('') }}{{ a.g | default('') }}{% if h is defined %}{{ h.i }}{% endif %}"
    assert names_in(template) == {("a", ""), ("a", "b"), ("a", "c"), ("d", "")}
    assert names_in("plain") == frozenset()
    with pytest.raises(TemplateInvalid):
        names_in("{{")


def test_a_page_of_html_can_hold_any_text():
    assert (
        fill("<pre>{{ body | escape }}</pre>", {"body": 'a < b & "c"'})
        == "<pre>a &lt; b &amp; &quot;c&quot;</pre>"
    )


@pytest.mark.parametrize(
    "template",
    ["{{ a }}", "{{a.b}}-{{ n }}", "x {{ a }}\n{{ n }}\n", "{{ true }}", "{{ flag }} {{ a }}", "{{ a.upper }}", "{{ c.b }}",
     "{{ c.items }}", "{{ c['b'] }}", "{{ missing }}", "{{ c.missing }}", "{{ listed }}", "}} {{ a }}", "{{ a }} {# no #}", "{{ a }}\r\n"],
)  # fmt: skip
def test_names_alone_are_filled_as_jinja_fills_them(template, monkeypatch):
    values = {"a": "{{ n }}", "n": 3, "flag": True, "true": "x", "c": {"b": "B"}, "listed": [1]}

    def filled():
        try:
            return fill(template, values)
        except TemplateInvalid as error:
            return str(error)

    quick = filled()
    monkeypatch.setattr(templates, "_simple", lambda _template: ())
    assert quick == filled()
