"""Hosts: other coding agents, whose hook payloads become one kind of action for gates, capture and memory.

A host is one module with a table: its events, its tools, its answers, and where its settings are. What a hook
loads (:mod:`agentx.hosts.hook` and below) needs the standard library alone, and little of it.

May import: client, core, storage.
"""
