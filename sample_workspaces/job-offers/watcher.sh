#!/bin/sh
# Prints what is new on a board of job offers: a line each. It knows nothing but its prompt.
#
#   watcher.sh DIRECTORY < PROMPT
#
# Its memory is the command `agentx done`. With --check the status is 0 for what is new, 3 for what was done.

prompt=$(cat)
tab=$(printf '\t')

while IFS="$tab" read -r number company title starts; do
    case $prompt in *"Nothing from $company"*) continue ;; esac
    set -- "company=$company" "title=$title" "starts=$starts"
    agentx done --check offer "$@" > /dev/null
    case $? in
        0) echo "$company: $title, from $starts (no. $number)" && agentx done offer "$@" > /dev/null || exit 1 ;;
        3) ;;
        *) exit 1 ;;
    esac
done < "$1/board.tsv"
