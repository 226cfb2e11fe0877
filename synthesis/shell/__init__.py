"""Read shell commands: the programs that a command line runs, and the files that they change.

May import: synthesis.language.
"""
