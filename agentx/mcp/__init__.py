"""AgentX over the Model Context Protocol: tools, resources, prompts; the home of the SDK.

May import: agentx, client, core, history, memory, policy, recording, settings, storage, synthesis, tools,
workspace.
"""
