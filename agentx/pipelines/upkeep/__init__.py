"""Looking after what a pipeline made: what is out of date, and what passes the checks of now.

May import: agents, engine, pipelines, pipelines.pointing, storage, synthesis.
"""
