"""Scheduled work: schedules, the check for interrupted runs, the daemon, the processes of runs.

May import: agents, core, directing, engine, settings, storage, synthesis, trust, workspace.
"""
