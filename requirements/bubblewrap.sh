#!/bin/sh
# Install bubblewrap for the tests that isolate commands with it, where nobody has to be asked: as root, with apt.
# Elsewhere those tests are skipped, and the same attacks run under Landlock. Never fails.
set -u
command -v bwrap >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    get() {
        timeout 120 apt-get -qq -y -o Acquire::Retries=0 -o Acquire::http::Timeout=10 "$@" </dev/null >/dev/null 2>&1
    }
    export DEBIAN_FRONTEND=noninteractive
    get install --no-install-recommends bubblewrap || { get update && get install --no-install-recommends bubblewrap; }
fi
command -v bwrap >/dev/null 2>&1 || echo "agentx: bubblewrap is not installed, so its tests are skipped." >&2
exit 0
