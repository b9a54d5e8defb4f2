//! What a task's actor does about a signal, and what it writes into the log.

use super::Fault;

/// Something that the actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Append this to the log of the task.
    Record(Record),
    /// Ask for the task's turn again; [`Signal::Turn`](super::Signal::Turn) says when that is, at once or later.
    ComeBack,
    /// Let another task of the agent run.
    GiveTurnBack,
    /// Give the task to its agent.
    Start,
    /// Listen again to the agent, which is elsewhere.
    Follow,
    /// Look after the children that an earlier run left; [`Signal::Tended`](super::Signal::Tended) says when they are over.
    Tend,
    /// Let the agent hear the answer, or that there was none in time.
    Answer,
    /// Keep the client's message until the agent has done what it is at: the agent hears it in another run.
    Keep,
    /// Let go of a run that is over, and have the oldest message that was kept ready for the next.
    Retire,
    /// Tell the client that its message was taken.
    Acknowledge,
    /// Tell the client that the task takes no message now.
    Refuse,
    /// Stop listening to the agent if it goes on without the hub; [`Signal::Left`](super::Signal::Left) tells.
    Leave,
    /// Stop the agent: ask it first, then end it, and its programs with it.
    Stop,
    /// Let the agent clean up after a task that was cancelled.
    CleanUp,
    /// Find out what the agent keeps of the task; [`Signal::Resumability`](super::Signal::Resumability) tells.
    AskHold,
}

/// What is written into a task's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The very thing that the signal tells of: what was told, asked or said, or the agent's end.
    Itself,
    /// That the agent is at work, and the task waits for nothing.
    Working,
    /// What the agent said at its end, of a task that goes on.
    Interim,
    /// That the task was cancelled.
    Canceled,
    /// That the task failed.
    Failed(Fault),
    /// That the task waits for its client, for its hub ends.
    Interrupted,
    /// That the task waits for its client to send it on its way: its agent's run ended with an earlier hub, and the children of that run
    /// are over.
    Stranded,
    /// That the task waits for its client without its agent.
    Parked,
}
