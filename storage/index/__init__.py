"""The memory index: a small port with two backends, in memory (the exact reference) and LanceDB."""
