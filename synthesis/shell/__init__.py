"""Read shell commands: the programs that a command line runs, with their words, redirects and input.

May import: nothing of ours.
"""
