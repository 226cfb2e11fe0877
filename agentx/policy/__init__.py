"""What an agent may do: the gate before an action, file policies, leases, secrets in arguments, approvals.

May import: core, engine, memory, recording, storage, synthesis, trust.
"""
