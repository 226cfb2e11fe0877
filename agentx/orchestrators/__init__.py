"""Adapters by which orchestrators keep their state, memory and gates in a workspace; one module each.

May import: core, engine, importing, storage, synthesis, tools, workspace.
"""
