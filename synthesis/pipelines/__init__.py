"""Pipelines of agents without memory: their definition, execution and checks.

May import: storage.
"""
