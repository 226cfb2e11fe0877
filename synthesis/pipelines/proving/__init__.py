"""Check that an agent's text is what was asked for: its prose, sections and words.

May import: synthesis.chunking, synthesis.language.
"""
