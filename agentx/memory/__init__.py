"""Changes to memory, by people, by models and by time: editing, note taking, maintenance, flows.

May import: engine, storage, synthesis.
"""
