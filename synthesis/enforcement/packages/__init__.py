"""Read which packages manifests, command lines and source files name.

May import: synthesis.language, synthesis.memory, synthesis.shell.
"""
