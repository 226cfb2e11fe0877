"""Lessons of past work: grading, backtests, what becomes a rule, the nightly maintenance plan.

May import: storage, synthesis.checks, synthesis.demands, synthesis.language, synthesis.memory,
synthesis.similarity, synthesis.state.
"""
