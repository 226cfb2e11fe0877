"""Tables of the words and patterns that recognise demands and rejections.

May import: synthesis.language.
"""
