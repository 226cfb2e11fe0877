# Publish to production: what is live is overwritten by what was built.
[ -f build/index.html ] || { echo "nothing was built"; exit 1; }
cp build/index.html live/index.html
echo "live/index.html is what was built"
