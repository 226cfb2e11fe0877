"""Lessons of past work: grading, backtests, rules made from lessons, the nightly maintenance plan.

May import: storage, synthesis.checks, synthesis.compiling, synthesis.language, synthesis.memory,
synthesis.shell, synthesis.similarity, synthesis.state.
"""
