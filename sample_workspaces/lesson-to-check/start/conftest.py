"""Lets the tests import daily.py from where it lies."""
