"""A fleet: runs that any of several workers carries out, each in the workspace's own Git history.

- ``place.py``: where a fleet's database and remotes are, per tenant; a private file of the user.
- ``submission.py``: a run that was asked for, signed by the user who asks.
- ``local_copy.py``: a worker's copy of a workspace: cloned, brought up to date, or set aside.
- ``remote_cache.py``: signed caches beside a remote, for workers without a copy.
- ``carrying_out.py``: one submission: fetch, open, run, push.
- ``worker.py``: takes submissions from the queue, shows signs of life, takes over those of dead workers.
- ``telemetry.py``: the trace of a submission, and the metrics.
- ``published_index.py``: search indexes on a shared place, which workers bring up to date.
- ``tenants.py``: several tenants on one machine: a worker process for each, and slots that they share.
- ``overview.py``: what the fleet does now.

The queue only distributes. Whose events are in a history is decided by one compare-and-swap of the ref on the
remote.

May import: agents, core, engine, recording, scheduling, search, settings, storage, synthesis, telemetry,
tools, transfer, trust, workspace.
"""
