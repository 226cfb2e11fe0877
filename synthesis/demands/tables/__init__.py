"""The words and patterns by which demands and rejections are recognised, as tables.

May import: synthesis.language.
"""
