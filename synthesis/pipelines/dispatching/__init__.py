"""The input of one dispatch: its token budget, its files cut to fit, its prompt.

May import: storage, synthesis.chunking, synthesis.language, synthesis.pipelines,
synthesis.pipelines.definition.
"""
