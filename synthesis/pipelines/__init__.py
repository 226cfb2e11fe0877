"""Pipelines of agents without memory: what a pipeline's file says, what follows from it, and what is proved.

May import: storage.
"""
