"""Agents: the loop that lets a model work in a workspace.

May import: config, context, engine, policy, storage, synthesis, tools, workspace.
"""
