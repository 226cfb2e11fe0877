#!/bin/sh
# Make .venv, with all that `make demo` (runtime: the package with every extra), `make test` (dev) or `make docs` (docs)
# needs; at once where it stands already.
#
#     sh requirements/install.sh runtime|dev|docs
#
# PYTHON chooses the interpreter; otherwise the newest of 3.13, 3.12 and 3.11 that really runs is taken (a version
# manager's shim may stand on PATH and fail). Whatever is missing is said in one sentence on standard error.
set -eu
cd "$(dirname "$0")/.."
what=${1:?runtime, dev or docs}
here=$(pwd -P)
venv=$here/.venv

fail() {
    echo "agentx: $*" >&2
    exit 1
}

runs() { # an interpreter that starts, of a version that we support, and holds these modules
    "$1" -c "import sys$2; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" >/dev/null 2>&1
}

command -v git >/dev/null 2>&1 || fail "git is missing: install it with your system's package manager (apt install git)."

# .venv is a function of this directory and of the interpreter asked for; what is in it, of these files. Stamps name both
# by their content.
made=$venv/made-$(echo "$here ${PYTHON:-}" | cksum | tr -c '0-9\n' '-')
key=$(cat requirements/*.txt pyproject.toml | cksum | tr -c '0-9\n' '-')
stamp() { echo "$venv/installed-$1-$key"; }
if [ -e "$made" ] && [ -e "$(stamp "$what")" ] && runs "$venv/bin/python" ", pygit2"; then
    exit 0
fi

if ! [ -e "$made" ] || ! runs "$venv/bin/python" ""; then
    python=
    without_venv=
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
        if runs "$candidate" ", ensurepip, venv"; then
            python=$candidate
            break
        elif runs "$candidate" ""; then
            without_venv=${without_venv:-$candidate}
        fi
    done
    if [ -z "$python" ] && [ -n "$without_venv" ]; then
        fail "$without_venv has no venv module: install it (Debian and Ubuntu: apt install python3-venv)."
    elif [ -z "$python" ]; then
        fail "no Python 3.11, 3.12 or 3.13 was found${PYTHON:+ as $PYTHON}: install one, or name it (make PYTHON=/path/to/python3.12)."
    fi
    echo "making .venv with $("$python" -V 2>&1)"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$python could not make .venv here: see the lines above."
    : >"$made"
fi

install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" >"$venv/install.log" 2>&1 && return
    reason=$(grep -m 1 '^ERROR' "$venv/install.log" || tail -n 1 "$venv/install.log")
    fail "the packages could not be installed; is the package registry within reach? pip says: $reason (all of it: .venv/install.log)"
}

set -- -r requirements/runtime.txt -r requirements/checkout.txt
[ "$what" = runtime ] || set -- "$@" -r requirements/dev.txt
[ "$what" != docs ] || set -- "$@" -r requirements/docs.txt
echo "installing the pinned packages into .venv (once; a minute or two)"
install --require-hashes "$@"
install --no-deps --no-build-isolation --editable .
rm -f "$venv"/installed-*
[ "$what" = runtime ] || : >"$(stamp dev)"
[ "$what" != docs ] || : >"$(stamp docs)"
: >"$(stamp runtime)"
