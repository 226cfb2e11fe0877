"""What a command line would write, remove, or leave alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.synthesis.shell.effects import effects, looks_only


@pytest.mark.parametrize(
    ("command", "path", "text"),
    [
        ("echo flask > a.txt", "a.txt", "flask"),
        ("echo x 2>&1 >a.txt", "a.txt", "x"),
        ("ls 2>/dev/null >| 'a'.txt", "a.txt", None),
        ("cat > a.txt <<'EOF'\nflask\nEOF\nls", "a.txt", "flask\n"),
        ("cd sub && echo x > ../a.txt", "sub/../a.txt", "x"),
        ("f=a.txt; echo x > ${f}", "a.txt", "x"),
        ("bash -c 'echo x > a.txt'", "a.txt", "x"),
        ("bash <<E\ntouch a.txt\nE", "a.txt", None),
        ("eval 'touch a.txt'", "a.txt", None),
        ("echo x | sudo tee -a a.txt", "a.txt", "x"),
        ("echo $(touch a.txt)", "a.txt", None),
        ("{ echo x; echo y; } > a.txt", "a.txt", None),
        ("(cd sub; ls) >> a.txt", "a.txt", None),
        ("cp b.txt sub/", "sub/b.txt", None),
        ("install -m 644 b.txt a.txt", "a.txt", None),
        ("ln -s /dev/null a.txt", "a.txt", None),
        ("sed -i -e s/a/b/ a.txt", "a.txt", None),
        ("dd if=/dev/zero of=a.txt", "a.txt", None),
        ("curl -s -o a.txt http://x", "a.txt", None),
        ("sort -oa.txt b", "a.txt", None),
        ("uniq b a.txt", "a.txt", None),
        ("tar -czf a.txt b", "a.txt", None),
        ("git checkout main -- a.txt", "a.txt", None),
        ("git restore --source main a.txt", "a.txt", None),
        ("cp -t sub b.txt", "sub/b.txt", None),
        ("ln -s ../a.txt", "a.txt", None),
        ("sed -i '' s/a/b/ a.txt", "a.txt", None),
        ("cat <<E >> a.txt; ls\nx\nE", "a.txt", "x\n"),
        ("cat <<E | tee a.txt && ls\nx\nE", "a.txt", "x\n"),
        ("echo 'touch a.txt' | sh", "a.txt", None),
        ("p() { touch a.txt; }; p", "a.txt", None),
        ("tee >(cat) a.txt /dev/stderr", "a.txt", None),
        ("find sub -name '*.py' -exec sed -i s/a/b/ {} +", "sub/*.py", None),
        ("touch $'a.txt' # > b.txt", "a.txt", None),
        ("# a comment > b.txt\ntouch a.txt", "a.txt", None),
        ("pip-compile --output=a.txt", "a.txt", None),
        ("python3 -c \"open('a.txt', 'w').write('x')\"", "a.txt", None),
        ("python3 - <<E\nfrom pathlib import Path\nPath('a.txt').write_text('x')\nE", "a.txt", None),
        ("node -e \"require('fs').writeFileSync('a.txt', 'x')\"", "a.txt", None),
    ],
)
def test_a_file_that_is_written_is_seen_with_its_text_where_that_is_known(command, path, text):
    assert [(one.path, one.text, one.removes) for one in effects(command)] == [(path, text, False)]


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf a b",
        "rm {a,b}",
        "git rm -r a b",
        "unlink a; rm b",
        "python -c \"os.remove('a'); shutil.rmtree('b')\"",
        "for f in a b; do rm $f; done",
        'files=(a b); rm "${files[@]}"',
        "if x; then f=a; else f=b; fi; rm $f",
        "cat <<E; rm a\nx\nE\nrm b",
        "echo a b | xargs -r rm",
        "rm a; rm b; echo 'open",
    ],
)
def test_files_that_are_removed_are_seen(command):
    assert [(one.path, one.removes) for one in effects(command)] == [("a", True), ("b", True)]


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cd a && (cd b; echo x) > f.txt", ["a/f.txt"]),
        ("(cd a; touch x); touch y", ["a/x", "y"]),
        ("bash -c 'cd a && touch x'; touch y", ["a/x", "y"]),
        ("cd a; (touch b; (cd c; touch d); touch e); touch f", ["a/b", "a/c/d", "a/e", "a/f"]),
        ("cd a && { cd b; touch y; }; touch z", ["a/b/y", "a/b/z"]),
        ("{ cd b; echo x; } > f; touch g", ["f", "b/g"]),
        ("cd a && for i in 1 2; do cd b; echo x; done >> f", ["a/f"]),
        ("touch $PWD/x; x=$(cd a; touch y); touch z", ["./x", "a/y", "z"]),
        ("p() { cd a; }; touch x", ["x"]),
    ],
)
def test_a_directory_is_changed_for_its_own_shell_alone(command, paths):
    assert [one.path for one in effects(command)] == paths


def test_what_is_moved_is_written_there_and_removed_here():
    assert {(one.path, one.removes) for one in effects("git mv a.txt b.txt")} == {
        ("b.txt", False),
        ("a.txt", True),
    }


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt", "echo 'a > b'", "python app.py < a.txt", "diff <(ls a) <(ls b)", "grep -o a.txt b", "git rm --cached a",
        "python -c \"print(open('a.txt').read())\"", "python -c \"' '.replace('a', 'b')\"", "ls 2>/dev/null", "find . -type f -o -name a", "git commit -m 'touch a.txt'", "sed -n 1p a.txt", "",
    ],
)  # fmt: skip
def test_what_only_reads_has_no_effects(command):
    assert effects(command) == ()


@pytest.mark.parametrize(
    "command",
    [
        "cd app && git status | head -5; cat a.txt", "find . -name '*.py' | xargs grep -n x | head", "sed -n '1,20p' a.txt",
        "timeout 5 cat a 2>/dev/null # > b", "for f in a b; do cat $f; done", "[ -f x ] && cat x || echo no", "f=a; /usr/bin/cat $f",
    ],
)  # fmt: skip
def test_what_certainly_changes_nothing_only_looks(command):
    assert looks_only(command)


@pytest.mark.parametrize(
    "command",
    [
        "", "ls | xargs rm", "git branch -D x", "make", "ls;" * 9_999 + "rm x", "ls && " * 200 + "rm x", "(" * 70 + "rm x" + ")" * 70,
        # what a substitution, a function, a loop or a nested shell runs
        "echo `rm x`", 'echo "$(rm x)"', "cat <(rm x)", "cat <<E\n$(rm x)\nE", "ls() { rm x; }; ls", "for c in ls rm; do $c x; done",
        "bash -c 'ls; rm x'", "sh <<E\nrm x\nE", "echo 'rm x' | sh", "x='ls; rm f'; eval $x", "find . -exec rm {} +", "if rm x; then ls; fi",
        # what evaluates a text
        "[[ -v 'a[$(rm x)]' ]]", "x=$'a[\\x24(rm f)]'; echo ${a[x]}", "x=$'\\x24(rm f)'; echo ${x@P}", "echo $[x]", "printf -v x y",
        # what is not the program of that name, or steers it
        "./ls x", "PATH=.:$PATH; ls", "for PATH in .; do ls; done", "PAGER=./x git log", "env -S'rm x' ls", "npx ls", "docker run image ls",
        # options that write or run
        "sort -o a a", "sort -oa a", "sort --compress-program=./x a", "uniq a b", "git log --output=f", "git grep -Ox a", "rg --pre ./x a",
        "find . -delete", "find . -fprint f", "sed -n 'w f' a", "sed -n 1p -i f", "file -C -m a",
        "echo -delete | xargs find .", "ls | xargs sort", "ls | xargs sed -n 1p", "find . $X", "sort $X a", "for x in -delete; do find . $x; done", "find *",
        # redirects
        "ls > f", "ls >& f", "ls 3>f", "cat a >| b", "{ ls; } > f", "for i in a; do ls; done >> f", "ls <> f", "ls | tee f",
        # what is not understood
        "ls 'open", "cat a; Remove-Item b", "cat (rm a)", "set -l x (rm a); ls",
    ],
)  # fmt: skip
def test_what_may_change_something_does_not_only_look(command):
    assert not looks_only(command)


@given(st.text(st.sampled_from("ab \n'\"\\<>|&;$(){}`=-\x01EOF0echo")))
def test_any_text_is_read_and_what_only_looks_writes_nothing(command):
    written = effects(command)
    assert all(one.path for one in written)
    assert not (looks_only(command) and written)
