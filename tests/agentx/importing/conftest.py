"""A workspace into which transcripts are imported."""

import pytest

from agentx import Workspace
from agentx.importing.transcripts import import_transcripts
from agentx.storage.events.transcript_events import TranscriptImported
from agentx.storage.events.types import UserMessageSent
from agentx.synthesis.memory.conclusions import Concluded


class Imports:
    """A workspace, and what imports made of it."""

    def __init__(self, folder):
        self.folder = folder
        self.ws = Workspace.create(folder / "ws")

    def take(self, *paths, host="claude-code"):
        return import_transcripts(self.ws.engine, host, list(paths), home=self.folder)

    @property
    def events(self):
        return list(self.ws.events())

    @property
    def facts(self):
        """What was recorded of the transcripts, without what depends on the place of an event."""
        skipped = (Concluded, TranscriptImported)
        return [
            (one.at, one.actor, one.run, one.key, one.data)
            for one in self.events[1:]
            if not isinstance(one.data, skipped)
        ]

    @property
    def said(self):
        return [one.data.body.text for one in self.events if isinstance(one.data, UserMessageSent)]

    @property
    def files(self):
        known = self.ws.engine.git.manifest()
        return {path: self.ws.engine.git.repo.read_blob(entry.oid).decode() for path, entry in known.items()}

    def sound(self):
        self.ws.flush()
        assert self.ws.rebuild().state_digest == self.ws.state.digest
        assert not [check for check in self.ws.verify().checks if check.findings]
        assert {path: (self.ws.artifacts / path).read_text() for path in self.files} == self.files
        return True


@pytest.fixture
def imports(tmp_path):
    made = Imports(tmp_path)
    yield made
    made.ws.close()
