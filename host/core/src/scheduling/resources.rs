//! Resources that are shared among the operator, agents and tenants: one table of their limits by
//! owner, and the refusal at a limit. The table is also a page of the book.

use super::shares::{Holder, ShareLimit, Shares, UsedUnits};
use crate::{grant::memory::DEFAULT_MAX_ITEMS, text::number::grouped};
use a2a_hub_protocol::id::AgentId;
use std::fmt::{self, Write as _};

/// Resource with limits by owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedResource {
    /// Connections to HTTP and gRPC.
    HttpConnections,
    /// Connections to the unix socket.
    SocketConnections,
    /// Open streams, over all endpoints.
    Streams,
    /// Topics of a tenant.
    Topics,
    /// Named cursors of a tenant. A cursor is a row of a few hundred bytes.
    Cursors,
    /// Stored messages of a topic.
    TopicMessages,
    /// Size of the stored messages of a topic.
    TopicBytes,
    /// Remembered requests, by which a repeated one is recognised. 100,000 take some 11 megabytes.
    Requests,
    /// Worktrees of tasks. An agent's worktrees count in the share of its tenant as well
    /// (`a2a-hub-worktrees` has the same numbers, and does not know this crate).
    Worktrees,
    /// Size of one agent's memory: values by key, and context memories. As much as the agent is
    /// granted; the default is what the templates of agents ask for.
    MemoryBytes,
    /// Items of one agent's context memories.
    MemoryItems,
    /// Size of the logs of tasks. All tasks below one that a tenant began are the tenant's.
    TaskBytes,
    /// Items of a blackboard. Like the rows below, the flow that has the board applies the limit
    /// (`a2a-hub-coordination` has the same numbers, and does not know this crate).
    BoardItems,
    /// Size of the items of a blackboard, with their results.
    BoardBytes,
    /// Changes of a blackboard by tools, in all turns of its step.
    BoardChanges,
}

/// Scope of the total of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShareScope {
    /// Connections or streams of the hub, which live only as long as their clients.
    Connections,
    /// One total for all tenants.
    Hub,
    /// One total for each tenant.
    Tenant,
    /// One total for each topic of a tenant.
    Topic,
    /// One total for each agent that remembers, for all its tenants and callers.
    Memory,
    /// One total for the logs of all tasks, which only the operator and tenants begin.
    Log,
    /// One total for each blackboard of a flow's task, which only the step's agents change.
    Board,
}

/// Reaction at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtLimit {
    /// The longest idle unit is closed for the new one; if none is idle, the new one is refused.
    ReplaceIdle,
    /// The new unit is refused.
    Refuse,
    /// The oldest unit of the holder with most is dropped.
    DropOldest,
}

/// Row of the table.
#[derive(Clone, Copy, Debug)]
struct ResourceLimits {
    /// Name of the units, such as `topics`.
    units: &'static str,
    scope: ShareScope,
    /// Default total.
    total: u64,
    at_limit: AtLimit,
    /// Setting of the total, if it has one.
    setting: Option<&'static str>,
}

impl SharedResource {
    /// All resources, in the order of the book.
    pub const ALL: [Self; 15] = [
        Self::HttpConnections,
        Self::SocketConnections,
        Self::Streams,
        Self::Topics,
        Self::Cursors,
        Self::TopicMessages,
        Self::TopicBytes,
        Self::Requests,
        Self::Worktrees,
        Self::MemoryBytes,
        Self::MemoryItems,
        Self::TaskBytes,
        Self::BoardItems,
        Self::BoardBytes,
        Self::BoardChanges,
    ];

    /// The one table of limits.
    const fn limits(self) -> ResourceLimits {
        use AtLimit::{DropOldest, Refuse, ReplaceIdle};
        use ShareScope::{Board, Connections, Hub, Log, Memory, Tenant, Topic};
        let (units, scope, total, at_limit, setting) = match self {
            Self::HttpConnections => {
                ("connections (HTTP, gRPC)", Connections, 4_000, ReplaceIdle, Some("max_streams"))
            }
            Self::SocketConnections => {
                ("connections (unix socket)", Connections, 1_000, ReplaceIdle, None)
            }
            Self::Streams => ("open streams", Connections, 2_000, Refuse, Some("max_streams")),
            Self::Topics => ("topics", Tenant, 500, Refuse, Some("topics.max_topics")),
            Self::Cursors => ("named cursors", Tenant, 1_000, Refuse, None),
            Self::TopicMessages => {
                ("messages", Topic, 10_000, DropOldest, Some("topics.keep_messages"))
            }
            Self::TopicBytes => {
                ("bytes of messages", Topic, 4 << 20, DropOldest, Some("topics.keep_mb"))
            }
            Self::Requests => ("remembered requests", Hub, 100_000, DropOldest, None),
            Self::Worktrees => ("worktrees", Hub, 256, Refuse, None),
            Self::MemoryBytes => {
                let setting = Some("agents.<id>.grant.memory");
                ("bytes of an agent's memory", Memory, 64 << 10, Refuse, setting)
            }
            Self::MemoryItems => {
                ("items of an agent's context memory", Memory, DEFAULT_MAX_ITEMS, Refuse, None)
            }
            Self::TaskBytes => {
                ("bytes of tasks", Log, 4 << 30, DropOldest, Some("retention.max_mb"))
            }
            Self::BoardItems => ("items", Board, 100, Refuse, None),
            Self::BoardBytes => ("bytes of items", Board, 64 << 10, Refuse, None),
            Self::BoardChanges => ("changes by tools", Board, 1_000, Refuse, None),
        };
        ResourceLimits { units, scope, total, at_limit, setting }
    }

    /// Default number of all units.
    pub const fn default_total(self) -> u64 {
        self.limits().total
    }

    /// Shares of a total of `total` units.
    pub fn shares(self, total: u64) -> Shares {
        match self.limits().scope {
            ShareScope::Connections => Shares::of_connections(total),
            ShareScope::Hub | ShareScope::Log => Shares::of_hub(total),
            ShareScope::Tenant | ShareScope::Topic => Shares::of_tenant(total),
            ShareScope::Memory => Shares::of_memory(total),
            ShareScope::Board => Shares::of_board(total),
        }
    }

    /// Checks that a holder may have one more of `total` units.
    ///
    /// # Errors
    ///
    /// A limit is reached, and nothing may be added.
    pub fn require_share(
        self,
        total: u64,
        holder: &Holder,
        used: UsedUnits,
    ) -> Result<(), ShareReached> {
        match self.shares(total).reached(holder, used) {
            None => Ok(()),
            Some(limit) => {
                Err(ShareReached { resource: self, holder: holder.clone(), limit, total })
            }
        }
    }

    /// Instruction for making room, for those who were refused.
    fn remedy(self) -> &'static str {
        match self {
            Self::Topics => {
                "publish to a known topic, or wait until all messages of one have expired; `a2a-hub topic delete` removes one, and \
                 `topics.max_topics` is the limit"
            }
            Self::Cursors => {
                "read with a known cursor, or with `after`; `a2a-hub topic delete --cursor` removes one"
            }
            Self::HttpConnections
            | Self::SocketConnections
            | Self::Streams
            | Self::TopicMessages
            | Self::TopicBytes
            | Self::Requests
            | Self::TaskBytes => "try again soon",
            Self::Worktrees => "`a2a-hub worktrees prune` removes some",
            Self::MemoryBytes | Self::MemoryItems => {
                "forget something, or grant the agent that remembers more memory"
            }
            Self::BoardItems | Self::BoardBytes | Self::BoardChanges => {
                "leave the rest to the other agents of the board"
            }
        }
    }
}

/// The refusal of one more unit: no share is left for this holder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ShareReached {
    /// Resource that is used up.
    pub resource: SharedResource,
    /// Holder that is refused.
    pub holder: Holder,
    /// Limit that is reached.
    pub limit: ShareLimit,
    /// Number of all units.
    pub total: u64,
}

impl fmt::Display for ShareReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, holder, limit, total } = self;
        let (units, remedy) = (resource.limits().units, resource.remedy());
        let verb = if *holder == Holder::Operator { "has" } else { "have" };
        match limit {
            ShareLimit::PerHolder(per_holder) => {
                write!(
                    f,
                    "add to the {units}: {holder} {verb} as many as they may, {per_holder} of {total}; {remedy}"
                )
            }
            ShareLimit::Shared(shared) => write!(
                f,
                "add to the {units}: agents, tenants and strangers have {shared} of {total}, and the others are the operator's; {remedy}"
            ),
            ShareLimit::All(total) => {
                write!(f, "add to the {units}: there are {total} already; {remedy}")
            }
        }
    }
}

/// Table of all limits by owner, with the defaults, as Markdown.
pub fn limits_table() -> String {
    let agent = AgentId::parse("a").map_or(Holder::Unknown, Holder::Agent);
    let holders = [agent, Holder::Client("t".to_owned()), Holder::Unknown];
    let mut table = "| resource | in all | one agent | one tenant's clients | all unknown callers | all but the operator | at a limit |\n\
                     | --- | --: | --: | --: | --: | --: | --- |\n"
        .to_owned();
    for resource in SharedResource::ALL {
        let ResourceLimits { units, scope, total, at_limit, setting } = resource.limits();
        let shares = resource.shares(total);
        let suffix = match scope {
            ShareScope::Connections | ShareScope::Hub | ShareScope::Memory | ShareScope::Log => "",
            ShareScope::Tenant => " of a tenant",
            ShareScope::Topic => " in a topic",
            ShareScope::Board => " of a blackboard",
        };
        let setting = setting.map(|name| format!("; `{name}`")).unwrap_or_default();
        let at_limit = match at_limit {
            AtLimit::ReplaceIdle => "An idle one is closed; else the new one is refused.",
            AtLimit::Refuse => "A new one is refused.",
            AtLimit::DropOldest => "The oldest of the owner with most are dropped.",
        };
        let numbers = [
            shares.total(),
            shares.limit_of(&holders[0]),
            shares.limit_of(&holders[1]),
            shares.limit_of(&holders[2]),
            shares.shared(),
        ];
        let mut numbers = numbers.map(grouped);
        let none = match scope {
            // An agent's tasks are those of the root's tenant, or the operator's.
            ShareScope::Log => &[1, 3][..],
            // No client changes a board.
            ShareScope::Board => &[2, 3],
            ShareScope::Connections
            | ShareScope::Hub
            | ShareScope::Memory
            | ShareScope::Tenant
            | ShareScope::Topic => &[],
        };
        for at in none {
            if let Some(number) = numbers.get_mut(*at) {
                "none".clone_into(number);
            }
        }
        let numbers = numbers.join(" | ");
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {units}{suffix}{setting} | {numbers} | {at_limit} |");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_names_resource_holder_and_remedy() {
        let agent = Holder::Agent(AgentId::parse("codex").unwrap());
        for (resource, holder, limit, text) in [
            (
                SharedResource::Topics,
                agent,
                ShareLimit::PerHolder(112),
                "add to the topics: the programs of the agent `codex` have as many as they may, 112 of 500; publish to a known topic, \
                 or wait until all messages of one have expired; `a2a-hub topic delete` removes one, and `topics.max_topics` is the limit",
            ),
            (
                SharedResource::Cursors,
                Holder::Client("acme".to_owned()),
                ShareLimit::Shared(900),
                "add to the named cursors: agents, tenants and strangers have 900 of 1000, and the others are the operator's; read with \
                 a known cursor, or with `after`; `a2a-hub topic delete --cursor` removes one",
            ),
            (
                SharedResource::Cursors,
                Holder::Operator,
                ShareLimit::All(1_000),
                "add to the named cursors: there are 1000 already; read with a known cursor, or with `after`; `a2a-hub topic delete \
                 --cursor` removes one",
            ),
        ] {
            let most = resource.default_total();
            let refusal = ShareReached { resource, holder, limit, total: most };
            assert_eq!(refusal.to_string(), text);
        }
    }

    #[test]
    fn large_numbers_are_grouped() {
        let shown = [0, 999, 1_000, 4_194_304].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "4,194,304"]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the developer says whether to write the file")]
    fn book_has_the_limits_by_owner() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/limits.md");
        let book = std::fs::read_to_string(file).unwrap();
        let (begin, end) = (
            "<!-- generated: `A2A_HUB_BOOK=write cargo nextest run -p a2a-hub-core limits_by_owner` writes this table -->\n\n",
            "\n<!-- end of the generated table -->\n",
        );
        let (head, rest) = book.split_once(begin).expect("the page has the begin of the table");
        let (_, tail) = rest.split_once(end).expect("the page has the end of the table");
        let written = format!("{head}{begin}{}{end}{tail}", limits_table());
        if std::env::var("A2A_HUB_BOOK").is_ok_and(|what| what == "write") {
            std::fs::write(file, &written).unwrap();
        }
        let is_same = std::fs::read_to_string(file).unwrap() == written;
        assert!(is_same, "docs/reference/limits.md differs from the table in code: {begin}");
    }
}
