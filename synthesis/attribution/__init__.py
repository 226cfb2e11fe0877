"""Tells the user's own words in a message from quoted, pasted and reported words of others.

May import: synthesis.language.
"""
