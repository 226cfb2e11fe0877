// AgentX for opencode: hands each event to `agentx hook opencode`, and acts on its answer.
// Written by `agentx install opencode`; `agentx uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = ["@COMMAND@"]
const LIMIT_MS = 5000

// Resolves to the answer; to an empty one whatever goes wrong, so that opencode is never stopped.
function ask(payload) {
  return new Promise((resolve) => {
    let heard = ""
    const done = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(heard) ?? {})
      } catch {
        resolve({})
      }
    }
    let child
    const timer = setTimeout(() => {
      child?.kill()
      done()
    }, LIMIT_MS)
    try {
      child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
      child.stdout.on("data", (piece) => (heard += piece))
      child.on("error", done)
      child.on("close", done)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      done()
    }
  })
}

export const AgentX = async ({ client, directory }) => {
  const waiting = new Map() // by session: context for its next request to the model
  const answers = new Map() // by session: the agent's latest text
  const started = new Set()
  const parents = new Map() // by session: the session whose agent started it; empty if the user did

  // Resolves to the parent of a session: what it says is no user's. A session that was resumed told nobody of it.
  const parentOf = async (session) => {
    if (!parents.has(session)) {
      try {
        const found = await client.session.get({ path: { id: session } })
        parents.set(session, (found?.data ?? found)?.parentID ?? "")
      } catch {
        return ""
      }
    }
    return parents.get(session)
  }

  const keep = (session, text) => {
    if (text) waiting.set(session, [waiting.get(session), text].filter(Boolean).join("\n\n"))
  }
  const tell = async (event, session, more) => {
    const about = { session_id: session, parent_id: await parentOf(session), cwd: directory }
    const answer = await ask({ hook_event_name: event, ...about, ...more })
    keep(session, answer.context)
    return answer
  }
  const start = async (session, source) => {
    if (started.has(session)) return
    started.add(session)
    await tell("session.created", session, { source })
  }

  return {
    event: async ({ event }) => {
      const about = event.properties ?? {}
      const session = about.sessionID ?? about.info?.id ?? about.info?.sessionID ?? ""
      if (about.info?.id && event.type.startsWith("session.")) parents.set(about.info.id, about.info.parentID ?? "")
      if (event.type === "session.created") await start(session, "startup")
      else if (event.type === "session.compacted") {
        await tell("session.compacted", session, {})
        started.delete(session)
        await start(session, "compact")
      } else if (event.type === "session.deleted") await tell("session.deleted", session, { reason: "deleted" })
      else if (event.type === "message.part.updated" && about.part?.type === "text") {
        answers.set(about.part.sessionID, about.part.text)
      } else if (event.type === "session.idle") {
        const text = answers.get(session) ?? ""
        answers.delete(session)
        const answer = await tell("session.idle", session, { last_assistant_message: text })
        if (answer.decision === "go_on") {
          await client.session.promptAsync?.({
            path: { id: session },
            body: { parts: [{ type: "text", text: answer.reason, synthetic: true }] },
          })
        }
      }
    },
    "chat.message": async (input, output) => {
      const parts = output.parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      const text = parts.map((part) => part.text).join("\n")
      await start(input.sessionID, "resume")
      answers.delete(input.sessionID)
      if (text) await tell("chat.message", input.sessionID, { prompt: text })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = waiting.get(input.sessionID)
      if (!text) return
      waiting.delete(input.sessionID)
      output.system.push(text)
    },
    "tool.execute.before": async (input, output) => {
      const answer = await tell("tool.execute.before", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: output.args,
      })
      if (answer.decision === "deny" || answer.decision === "ask") throw new Error(answer.reason)
    },
    "tool.execute.after": async (input, output) => {
      await tell("tool.execute.after", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: input.args ?? {},
        tool_response: output.output,
        metadata: output.metadata,
      })
    },
    "experimental.session.compacting": async (input, output) => {
      const answer = await tell("experimental.session.compacting", input.sessionID, {})
      if (answer.context) output.context.push(answer.context)
    },
    "shell.env": async (_input, output) => {
      output.env.AGENTX_RUN = "opencode"
    },
  }
}
