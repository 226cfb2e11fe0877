"""A running pipeline: what is done, what is next, what was remembered.

May import: storage, synthesis.chunking, synthesis.memory, synthesis.model, synthesis.pipelines,
synthesis.pipelines.definition, synthesis.pipelines.proving, synthesis.state.
"""
