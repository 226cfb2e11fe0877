"""Install hooks into the settings of hosts, remove them again, and make the memory of a project.

May import: client, core, hosts, settings, storage, workspace.
"""
