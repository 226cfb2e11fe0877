# Back up what is live, numbered.
mkdir -p backups
number=$(ls backups | wc -l | tr -d ' ')
cp live/index.html "backups/$number.html"
echo "kept backups/$number.html"
