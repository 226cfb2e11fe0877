"""Every type of fact that storage knows, by its name in the log."""

from agentx.storage.cognition_events import Interacted, Recognized
from agentx.storage.direction_events import DirectiveFailed, DirectiveIssued, FieldExplained
from agentx.storage.events import (
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
from agentx.storage.pipeline_events import (
    Dispatched,
    FileAmended,
    PipelineEnded,
    PipelineStarted,
    StageProved,
    StageReopened,
)
from agentx.storage.schedule_events import DuePassed, ScheduleRemoved, ScheduleSet

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
        PipelineEnded,
        Dispatched,
        StageProved,
        StageReopened,
        FileAmended,
        Recognized,
        Interacted,
        SourceScanned,
        EventsPurged,
    )
}
