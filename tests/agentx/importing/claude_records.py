"""Records in the form of Claude Code 2.1, made for tests."""

import json

SESSION = "5e55105e-0000-4000-8000-000000000001"
ROOT = "/home/dev/shop"


class Transcript:
    """Builds a transcript record by record, a second apart."""

    def __init__(self, session=SESSION, root=ROOT, day="2026-02-03"):
        self.session, self.root, self.day = session, root, day
        self.records = []

    def add(self, **record):
        number = len(self.records)
        known = {
            "sessionId": self.session,
            "cwd": self.root,
            "version": "2.1.37",
            "uuid": f"{self.session[:8]}-{number:04}",
            "timestamp": f"{self.day}T09:{number // 60:02}:{number % 60:02}.000Z",
            "isSidechain": False,
        }
        self.records.append(known | record)
        return self

    def user(self, text, **more):
        return self.add(type="user", message={"role": "user", "content": text}, **more)

    def says(self, text, **more):
        content = [{"type": "text", "text": text}]
        return self.add(type="assistant", message=_message(content, len(self.records)), **more)

    def call(self, tool, output="ok", told=None, error=False, name="", **arguments):
        name = name or f"toolu_{len(self.records):04}"
        used = [{"type": "tool_use", "id": name, "name": tool, "input": arguments}]
        self.add(type="assistant", message=_message(used, len(self.records)))
        result = {"type": "tool_result", "tool_use_id": name, "content": output}
        if error:
            result["is_error"] = True
        content = {"role": "user", "content": [result]}
        return self.add(type="user", message=content, toolUseResult=told if told is not None else output)

    def bash(self, command, output="", code=0):
        if code:
            text = f"Exit code {code}\n{output}"
            return self.call("Bash", text, told=f"Error: {text}", error=True, command=command)
        told = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return self.call("Bash", output, told=told, command=command)

    def edit(self, path, old, new, base=None):
        told = {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "originalFile": base,
            "replaceAll": False,
        }
        return self.call("Edit", "updated", told=told, file_path=path, old_string=old, new_string=new)

    def write(self, path, content):
        return self.call(
            "Write", "created", told={"filePath": path, "content": content}, file_path=path, content=content
        )

    def read(self, path, content):
        lines = content.count("\n") + 1
        file = {"filePath": path, "content": content, "numLines": lines, "startLine": 1, "totalLines": lines}
        return self.call("Read", content, told={"type": "text", "file": file}, file_path=path)

    def refuse(self, tool, reason="", **arguments):
        text = "The user doesn't want to proceed with this tool use. The tool use was rejected."
        if reason:
            text += f" To tell you how to proceed, the user said:\n{reason}"
        return self.call(tool, text, told=f"Error: {text}", error=True, **arguments)

    def save(self, path, upto=None):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(record, ensure_ascii=False) for record in self.records[:upto])
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8", "surrogatepass")
        return path


def _message(content, number):
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 0,
        "output_tokens": 5,
    }
    return {
        "id": f"msg_{number}",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": content,
        "usage": usage,
    }
