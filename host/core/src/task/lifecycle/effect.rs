//! Effects of a signal: actions of a task's actor and entries of its log.

use super::Fault;

/// Action of the task's actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Appends an entry to the log of the task.
    Record(Record),
    /// Requests a run permit again; [`Signal::Turn`](super::Signal::Turn) reports it, at once or
    /// later.
    ComeBack,
    /// Releases the run permit.
    GiveTurnBack,
    /// Starts the agent with the task.
    Start,
    /// Re-attaches to the remote agent.
    Follow,
    /// Supervises the children of an earlier run; [`Signal::Tended`](super::Signal::Tended) reports
    /// their end.
    Tend,
    /// Delivers the answer to the agent, or the fact that none came in time.
    Answer,
    /// Queues the client's message until the agent's current run ends; the next run receives it.
    Keep,
    /// Hands the oldest queued message to the agent at work, which reads it.
    Deliver,
    /// Drops a finished run, and prepares the oldest queued message for the next run.
    Retire,
    /// Drops a finished run whose agent continues after the reset of its quota.
    Pause,
    /// Tells the client that its message was accepted.
    Acknowledge,
    /// Tells the client that the task accepts no message now.
    Refuse,
    /// Detaches from the agent if the agent continues without the hub;
    /// [`Signal::Detached`](super::Signal::Detached) reports the result.
    Leave,
    /// Stops the agent and its programs: first by request, then by force.
    Stop,
    /// Lets the agent clean up after a cancelled task.
    CleanUp,
    /// Finds out whether the agent can resume the task;
    /// [`Signal::Resumability`](super::Signal::Resumability) reports the result.
    AskHold,
}

/// Entry of a task's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The signal's own event: the agent's event, question or end, or the client's message.
    Itself,
    /// The agent works, and the task waits for nothing.
    Working,
    /// Final message of an agent's run whose task continues.
    Interim,
    /// The task was cancelled.
    Canceled,
    /// The task failed.
    Failed(Fault),
    /// The task waits for its client because the hub shuts down.
    Interrupted,
    /// The task waits for its client to continue it: its agent's run ended with an earlier process,
    /// and the children of that run have ended.
    Stranded,
    /// The task waits for its client without its agent.
    Evicted,
    /// The hub's message that starts an unattended run again.
    Again,
    /// The task waits for the reset of its agent's quota.
    Waits,
    /// The hub's message with which the agent continues after that wait.
    Continues,
}
