"""Check that an agent's text is what was asked for: markers, terms, glossary.

May import: synthesis.chunking, synthesis.language.
"""
