#!/bin/sh
# Prints what is new on a board of job offers: a line each. It knows nothing but its prompt.
#
#   watcher.sh DIRECTORY < PROMPT
#
# Its memory is the command `agentx done`: status 0 where the offer is new, 3 where it was printed before.

prompt=$(cat)
tab=$(printf '\t')

while IFS="$tab" read -r number company title starts; do
    case $prompt in *"Nothing from $company"*) continue ;; esac
    agentx done offer "company=$company" "title=$title" "starts=$starts" > /dev/null
    case $? in
        0) echo "$company: $title, from $starts (no. $number)" ;;
        3) ;;
        *) exit 1 ;;
    esac
done < "$1/board.tsv"
