"""Whether what an agent wrote is what was asked: markers, terms, glossary.

May import: synthesis.chunking, synthesis.language.
"""
