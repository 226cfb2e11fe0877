"""Each language's definitions are found with their names, kinds, lines, signatures and first line of documentation."""

import pytest

from agentx.synthesis.chunking import outline

EXAMPLES = {
    "a.py": (
        ('import os\n\n# Why.\n@app.get("/x")\nasync def f(\n    a: int,\n) -> str:\n    """Say it.\n\n    More.\n    """\n'
        "    def inner(): pass\n\nif os:\n    class A(B):\n        @property\n        def m(self): ...\n"),
        [
            ("f", "function", 3, 12, "async def f( a: int, ) -> str", "Say it."),
            ("A", "class", 15, 17, "class A(B)", ""),
            ("A.m", "method", 16, 17, "def m(self)", ""),
        ],
    ),
    "a.js": (
        ("/** Doc. */\nexport default class A extends B {\n  m(x) { return 1 }\n}\nexport const f = async (x) => {\n}\n"
        "const data = 3\nmodule.exports.h = function (a) {}\n"),
        [
            ("A", "class", 1, 4, "class A extends B", "Doc."),
            ("A.m", "method", 3, 3, "m(x)", ""),
            ("f", "function", 5, 6, "f = async (x)", ""),
            ("module.exports.h", "function", 8, 8, "module.exports.h = function (a)", ""),
        ],
    ),
    "a.ts": (
        ("export interface I { a: string }\ntype T = string;\nenum E { A }\nnamespace N {\n  export function z(): void {}\n}\n"
        "abstract class C<T> {\n  abstract k(): void;\n}\n"),
        [
            ("I", "interface", 1, 1, "export interface I".removeprefix("export "), ""),
            ("T", "type", 2, 2, "type T = string", ""),
            ("E", "enum", 3, 3, "enum E", ""),
            ("N", "module", 4, 6, "namespace N", ""),
            ("N.z", "function", 5, 5, "function z(): void", ""),
            ("C", "class", 7, 9, "abstract class C<T>", ""),
            ("C.k", "method", 8, 8, "abstract k(): void", ""),
        ],
    ),
    "a.tsx": (
        "export function App(): JSX.Element {\n  return <b>x</b>\n}\n",
        [("App", "function", 1, 3, "function App(): JSX.Element", "")],
    ),
    "a.go": (
        "package p\n\n// Get asks.\n// More.\nfunc (c *Client[T]) Get(x int) error {\n\treturn nil\n}\n\ntype (\n\tS struct {\n\t\tA int\n\t}\n)\n",
        [
            ("Client.Get", "method", 3, 7, "func (c *Client[T]) Get(x int) error", "Get asks."),
            ("S", "type", 9, 12, "S struct", ""),
        ],
    ),
    "a.rs": (
        "/// A thing.\n#[derive(Debug)]\npub struct S<T> { a: T }\nimpl<T> Tr for S<T> {\n    fn m(&self) {}\n}\nmod tests {\n    #[test]\n    fn a() {}\n}\n",
        [
            ("S", "struct", 1, 3, "pub struct S<T>", "A thing."),
            ("S", "impl", 4, 6, "impl<T> Tr for S<T>", ""),
            ("S.m", "method", 5, 5, "fn m(&self)", ""),
            ("tests", "module", 7, 10, "mod tests", ""),
            ("tests.a", "function", 8, 9, "fn a()", ""),
        ],
    ),
    "A.java": (
        "package a;\n/**\n * Does it.\n */\npublic class A extends B {\n  A() {}\n  void m(int a) {}\n  enum E { Q }\n}\n",
        [
            ("A", "class", 2, 9, "public class A extends B", "Does it."),
            ("A.A", "method", 6, 6, "A()", ""),
            ("A.m", "method", 7, 7, "void m(int a)", ""),
            ("A.E", "enum", 8, 8, "enum E", ""),
        ],
    ),
    "a.c": (
        ("/* Finds. */\nstatic int *find(int a, char **b)\n{\n  return 0;\n}\nint declared(int);\ntypedef struct { int b; } T;\n"
        "#ifdef X\nvoid g(void) {}\n#endif\n"),
        [
            ("find", "function", 1, 5, "static int *find(int a, char **b)", "Finds."),
            ("T", "type", 7, 7, "typedef struct { int b; } T", ""),
            ("g", "function", 9, 9, "void g(void)", ""),
        ],
    ),
    "a.cpp": (
        "namespace n {\ntemplate <class T>\nclass C : public B {\n public:\n  int m() const { return 1; }\n};\n}\nint &n::C::k(int a) { return x; }\n",
        [
            ("n", "module", 1, 7, "namespace n", ""),
            ("n.C", "class", 2, 6, "class C : public B", ""),
            ("n.C.m", "method", 5, 5, "int m() const", ""),
            ("n.C.k", "function", 8, 8, "int &n::C::k(int a)", ""),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES)
def test_definitions_of_each_language_are_found(path):
    text, expected = EXAMPLES[path]
    found = [(e.symbol, e.kind, e.start_line, e.end_line, e.signature, e.doc) for e in outline(path, text)]
    assert found == expected


def test_a_comment_that_stands_apart_belongs_to_nothing():
    assert outline("a.py", "# Licence.\n\ndef f(): pass\n")[0].start_line == 3
    assert outline("a.py", "x = 1  # not f's\ndef f(): pass\n")[0].start_line == 2
