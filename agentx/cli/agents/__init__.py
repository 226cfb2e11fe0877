"""Commands about agents: missions, direction, gates, capabilities, cognition, schedules.

May import: agents, cli, cli.work, cognition, cognition.pictures, core, directing, engine, fleet, memory,
policy, scheduling, storage, synthesis, tools, trust, workspace.
"""
