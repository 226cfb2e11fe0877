# QA: look at the live page as a customer does.
bad=0
grep -q 'id="today">Today: [a-z]' live/index.html || { echo "live/index.html: the shop's note of the day is gone"; bad=1; }
grep '<li>' live/index.html | grep -v '€' | sed 's/^/live\/index.html: no price: /' | grep . && bad=1
[ "$bad" = 0 ] && echo "the page is as it should be"
exit "$bad"
