"""When schedules are due, and which agent a task goes to.

May import: storage, synthesis.language, synthesis.memory, synthesis.state.
"""
