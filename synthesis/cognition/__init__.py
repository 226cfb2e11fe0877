"""Thinking about a question, as pure code: what to look for, what of the found is kept, and whether it is enough.

A question becomes a graph of sub-queries (:mod:`~agentx.synthesis.cognition.expansion`), each is searched for, and what comes
back is merged, ranked and cut to a budget of tokens (:mod:`~agentx.synthesis.cognition.curation`), by what its sentences say
(:mod:`~agentx.synthesis.cognition.statements`). Two tiers of uncertainty decide whether to look at all, and whether to look once
more with what was found (:mod:`~agentx.synthesis.cognition.uncertainty`). Nothing here reads a file, asks a model or knows an
index: a search is a function that is given.
"""
