//! Kinds of steps. A kind is a module with its [`StepKind`] and the keys that name it, and a row of
//! the table below.

pub(super) mod agent;
pub(super) mod ask;
pub(super) mod interaction;
pub(super) mod kind;
pub(super) mod pick;
pub(super) mod run;
pub(super) mod subflow;
pub(super) mod vote;
pub(super) mod wait;

use super::program::StepProgram;
use kind::{KindKey, StepKind, StepReader};

/// Makes the table: a variant of [`Work`] with its model, and the keys that name the kind.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($model:ty): $keys:expr;)*) => {
        /// Work of a step.
        #[derive(Clone, Debug)]
        pub(super) enum Work {
            $($(#[$doc])* $kind($model),)*
        }

        impl Work {
            /// The work, whatever its kind.
            pub(super) fn kind(&self) -> &dyn StepKind {
                match self {
                    $(Self::$kind(work) => work,)*
                }
            }

            /// Names of the kinds with the keys beside each, in the order in which they are listed.
            pub(super) fn keys() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
                let keys = std::iter::empty();
                $(let keys = keys.chain($keys.iter().map(|it| (it.name, it.with)));)*
                keys
            }

            /// Reads the work of a step; none if one of its keys has an error.
            pub(super) fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<Self> {
                $(if let Some(key) = find($keys, step.key) {
                    return (key.parse)(step).map(Self::$kind);
                })*
                None
            }
        }
    };
}

kinds! {
    /// A task of another agent.
    Agent(agent::AgentStep): agent::KEYS;
    /// A task of another flow.
    Flow(subflow::SubflowStep): subflow::KEYS;
    /// A question to the client.
    Ask(ask::AskStep): ask::KEYS;
    /// A pause.
    Wait(wait::WaitStep): wait::KEYS;
    /// A program with its arguments, as they stand in the file.
    Run(StepProgram): run::KEYS;
    /// A vote of agents.
    Vote(vote::VoteStep): vote::KEYS;
    /// A choice among candidates in worktrees.
    Pick(pick::Pick): pick::KEYS;
    /// A decision of agents over several turns.
    Interaction(interaction::Interaction): interaction::KEYS;
}

fn find<W>(keys: &'static [KindKey<W>], name: &str) -> Option<&'static KindKey<W>> {
    keys.iter().find(|key| key.name == name)
}
