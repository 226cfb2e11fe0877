"""All fact types that storage knows, by their name in the log."""

from agentx.storage.events.act_events import ActDone, ActRetracted
from agentx.storage.events.checkpoint_events import (
    CheckpointSaved,
    CheckpointWritesSaved,
    StoreItemDeleted,
    StoreItemSet,
    ThreadCopied,
    ThreadsDeleted,
)
from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued, FieldExplained
from agentx.storage.events.host_events import ConversationChanged, SessionNoted
from agentx.storage.events.pipeline_events import (
    Dispatched,
    FileAmended,
    ItemsFound,
    PipelineEnded,
    PipelineStarted,
    StageKept,
    StageProved,
    StageReopened,
)
from agentx.storage.events.rule_file_events import RulesExported, RulesRead
from agentx.storage.events.schedule_events import DuePassed, ScheduleRemoved, ScheduleSet
from agentx.storage.events.transcript_events import HostRecordKept, TranscriptImported
from agentx.storage.events.types import (
    AgentMessageSent,
    AgentThoughtProcess,
    ApprovalDecided,
    ArtifactChanged,
    CapabilityChecked,
    ContextProvided,
    EventsPurged,
    Payload,
    RunEnded,
    RunStarted,
    SourceScanned,
    TaskGraded,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
    WorkspaceCreated,
    WorkspaceForked,
    WriteReverted,
)

FACTS: dict[str, type[Payload]] = {
    payload.__name__: payload
    for payload in (
        WorkspaceCreated,
        WorkspaceForked,
        UserMessageSent,
        AgentMessageSent,
        AgentThoughtProcess,
        ToolCallRequested,
        ToolCallExecuted,
        ApprovalDecided,
        ActDone,
        ActRetracted,
        ArtifactChanged,
        WriteReverted,
        RunStarted,
        RunEnded,
        ContextProvided,
        TaskGraded,
        CapabilityChecked,
        DirectiveIssued,
        DirectiveFailed,
        FieldExplained,
        ScheduleSet,
        ScheduleRemoved,
        DuePassed,
        PipelineStarted,
        ItemsFound,
        PipelineEnded,
        Dispatched,
        StageProved,
        StageKept,
        StageReopened,
        FileAmended,
        Recognized,
        Interacted,
        RulesExported,
        RulesRead,
        SourceScanned,
        HostRecordKept,
        TranscriptImported,
        SessionNoted,
        ConversationChanged,
        ConversationChanged,
        EventsPurged,
        CheckpointSaved,
        CheckpointWritesSaved,
        ThreadsDeleted,
        ThreadCopied,
        StoreItemSet,
        StoreItemDeleted,
    )
}
