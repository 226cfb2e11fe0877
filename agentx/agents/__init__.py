"""Agents: the loop that lets a model work in a workspace."""
