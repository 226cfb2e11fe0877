"""A pipeline as an SVG picture.

May import: pipelines, synthesis.
"""
