"""The tools of an agent: typed functions of Python, with JSON schemas made from their signatures."""
