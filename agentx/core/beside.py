"""Where a workspace stands beside a project: in a directory of the project that Git ignores.

Loads nothing, because each hook of a host reads it.
"""

FOLDER = ".agentx-project"
"""Directory in the project. Its ``.gitignore`` excludes all of it, so that Git does not see it."""

BESIDE = f"{FOLDER}/workspace"
"""The workspace, relative to the project."""

ARTIFACTS = "../.."
"""The project, relative to the workspace."""

HOOK_CHECKS = "hook-checks.json"
"""Name of the file with the checks that hooks apply by themselves, in the cache directory of a workspace."""
