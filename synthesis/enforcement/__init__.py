"""Evaluate the checks of rules on a write, a deletion, a command line or an answer.

Pure: texts in, violations out. Each kind of check has one module, which yields its breaches; :mod:`.evaluate`
decides which checks apply and what a breach leads to.

May import: storage, synthesis.enforcement.packages, synthesis.language, synthesis.memory,
synthesis.pipelines.definition, synthesis.shell.
"""
