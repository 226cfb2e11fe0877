# Build the page from pages/.
mkdir -p build
{ echo "<h1>Bakery at the Mill</h1>"; cat pages/today.html pages/prices.html; } > build/index.html
echo "built build/index.html, $(wc -l < build/index.html | tr -d ' ') lines"
