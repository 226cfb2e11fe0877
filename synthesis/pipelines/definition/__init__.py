"""A pipeline's file: parsing, checking, and resolving it to steps.

May import: storage, synthesis.chunking, synthesis.pipelines, synthesis.pipelines.proving.
"""
