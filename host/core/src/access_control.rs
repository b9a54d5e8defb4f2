//! Access control: maps each operation to the access it needs, and each caller to the access it
//! has, independent of the transport.

mod table;

pub use table::{needed, rule_for_people};

use crate::identity::{
    CardScopes, PersonName, PersonRights, automation_of_key, key_of_automation, person_identity,
};
use a2a_hub_protocol::id::{AgentId, TaskId, TenantId};
use std::fmt;

/// Authenticated caller. The transport establishes it from unforgeable evidence: the kernel's peer
/// credentials of a connection, or a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The operator, proven by the kernel on the unix socket: a process of the hub's own user that
    /// no agent started, or the program that embeds the hub.
    Operator,
    /// The operator over HTTP, proven by the kernel's socket table. The process at the other end
    /// may serve somebody else: forwarded ports (`sshd`, editors, `socat`) run as the hub's user.
    /// So this principal administers the hub, but has no [`Access::Owner`].
    OperatorHttp,
    /// A client with the operator's token. It may administer the hub, but not change grants or copy
    /// the store ([`Access::Owner`]), because a token can be stolen and does not identify its user.
    OperatorToken,
    /// A browser that the operator paired with the hub, proven by its key ([`crate::devices`]). It
    /// does the hub's daily work, and neither adds agents nor changes grants.
    Device {
        /// Id of the device.
        id: String,
    },
    /// A program of an agent that works on a task.
    AgentTask {
        /// Agent that runs the program.
        agent: AgentId,
        /// Task that the agent works on.
        task: TaskId,
    },
    /// A schedule or trigger of the operator's configuration, which sends messages at planned times
    /// or after events, and does nothing else. No two of them have one name. One that has an owner
    /// is that person ([`Principal::owned_automation`]).
    Automation {
        /// Name of the schedule or trigger.
        name: String,
    },
    /// A client with the token of the tenant of this name, and that tenant's rights.
    Client(String),
    /// A person whom the operator let in, proven by an API key ([`crate::identity`]).
    Person {
        /// Name of the person.
        name: PersonName,
        /// Id of the key, or a text in its place for a run of the person's schedule or trigger.
        key: String,
    },
    /// An unauthenticated caller.
    Anonymous,
}

/// Caller of an operation, with the tenant that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Authenticated principal.
    pub principal: Principal,
    /// Tenant that the request names; the default tenant if it names none.
    pub tenant: TenantId,
}

/// Error for a request that names a tenant of others or an unknown one. It does not reveal which of
/// the two.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tenant `{0}`")]
pub struct UnknownTenant(TenantId);

impl From<&Principal> for Caller {
    fn from(principal: &Principal) -> Self {
        Self { principal: principal.clone(), tenant: TenantId::default() }
    }
}

impl From<Principal> for Caller {
    fn from(principal: Principal) -> Self {
        Self { principal, tenant: TenantId::default() }
    }
}

impl Caller {
    /// Tenant that the request is carried out for; `are_there` tests if a tenant exists. The
    /// principal decides it: a client has its own tenant, an agent's program or a person has the
    /// `assigned` one, and only an operator may name any.
    pub fn tenant_among(
        &self,
        are_there: impl Fn(&TenantId) -> bool,
        assigned: &TenantId,
    ) -> Result<TenantId, UnknownTenant> {
        let named = &self.tenant;
        let assigned = match &self.principal {
            Principal::Operator
            | Principal::OperatorHttp
            | Principal::OperatorToken
            | Principal::Device { .. }
                if named.is_default() || are_there(named) =>
            {
                return Ok(named.clone());
            }
            Principal::Client(name) => TenantId::parse(name.as_str()).unwrap_or_default(),
            Principal::AgentTask { .. } | Principal::Person { .. } => assigned.clone(),
            Principal::Operator
            | Principal::OperatorHttp
            | Principal::OperatorToken
            | Principal::Device { .. }
            | Principal::Automation { .. }
            | Principal::Anonymous => TenantId::default(),
        };
        if named.is_default() || *named == assigned {
            return Ok(assigned);
        }
        Err(UnknownTenant(named.clone()))
    }
}

/// Access that an operation needs, in increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// None: the result is public.
    Public,
    /// Access of a schedule or trigger: it begins tasks, and neither sees nor changes others.
    Send,
    /// Access of an agent's program that works on a task and may call other agents: it lists them,
    /// gives them tasks, and manages these tasks.
    Delegate,
    /// Access of a client of the hub.
    Use,
    /// Access to the daily work of the hub: all stored tasks, and what runs by itself.
    Operate,
    /// Access to run the hub: its agents and all stored data.
    Administer,
    /// Access of the hub's owner, proven by the kernel on the unix socket: grants of plug-ins, and
    /// copies of the whole store. Neither HTTP nor a token gives it.
    Owner,
}

/// Error for an operation that the caller may not use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{principal} may not do this: {access}")]
pub struct AccessDenied {
    principal: Principal,
    access: Access,
}

impl Principal {
    /// Checks that this principal has the access.
    pub fn may(&self, access: Access) -> Result<(), AccessDenied> {
        let granted = match self {
            Self::Operator => Access::Owner,
            Self::OperatorHttp | Self::OperatorToken => Access::Administer,
            Self::Device { .. } => Access::Operate,
            // What a person may do is narrowed further by role and key.
            Self::Client(_) | Self::Person { .. } => Access::Use,
            Self::AgentTask { .. } => Access::Delegate,
            Self::Automation { .. } => Access::Send,
            Self::Anonymous => Access::Public,
        };
        if access <= granted {
            return Ok(());
        }
        Err(AccessDenied { principal: self.clone(), access })
    }

    /// Scopes of cards that this principal holds; `rights` are those of a person. The calls of an
    /// agent's program have the scopes of its task's tree instead.
    pub fn card_scopes(&self, rights: Option<&PersonRights>) -> CardScopes {
        match self {
            Self::Operator
            | Self::OperatorHttp
            | Self::OperatorToken
            | Self::Device { .. }
            | Self::Automation { .. } => CardScopes::All,
            Self::Person { .. } => {
                rights.map_or(CardScopes::NONE, |rights| rights.scopes.of_cards())
            }
            Self::Client(_) | Self::AgentTask { .. } | Self::Anonymous => CardScopes::NONE,
        }
    }
}

/// Prefix of a task id that names a process tree instead of a task: a program may outlive the task
/// that it was started for, and then work for another one.
const TREE: &str = "tree/";

impl Principal {
    /// Principal for a program of this agent, in this process tree. The task is resolved when the
    /// program calls the hub.
    pub fn of_tree(agent: AgentId, tree: &str) -> Self {
        Self::AgentTask { agent, task: TaskId::new(format!("{TREE}{tree}")) }
    }

    /// Principal for the runs of a schedule or trigger that has this owner.
    pub fn owned_automation(owner: PersonName, automation: &str) -> Self {
        Self::Person { name: owner, key: key_of_automation(automation) }
    }

    /// Name of the schedule or trigger; `None` for other principals.
    pub fn automation(&self) -> Option<&str> {
        match self {
            Self::Automation { name } => Some(name),
            Self::Person { key, .. } => automation_of_key(key),
            Self::Operator
            | Self::OperatorHttp
            | Self::OperatorToken
            | Self::Device { .. }
            | Self::AgentTask { .. }
            | Self::Client(_)
            | Self::Anonymous => None,
        }
    }

    /// True for the operator, however that is proven.
    pub fn is_operator(&self) -> bool {
        match self {
            Self::Operator | Self::OperatorHttp | Self::OperatorToken | Self::Device { .. } => true,
            Self::AgentTask { .. }
            | Self::Automation { .. }
            | Self::Client(_)
            | Self::Person { .. }
            | Self::Anonymous => false,
        }
    }

    /// Process tree of the calling program, until its current task is resolved.
    pub fn tree(&self) -> Option<&str> {
        let Self::AgentTask { task, .. } = self else { return None };
        task.as_str().strip_prefix(TREE)
    }

    /// Identity across tasks: an agent is the same for all its tasks, and the operator or a person
    /// is the same with each proof.
    pub fn identity(&self) -> String {
        match self {
            Self::Person { name, .. } => person_identity(name),
            Self::AgentTask { agent, .. } => format!("agent:{agent}"),
            Self::OperatorHttp | Self::OperatorToken | Self::Device { .. } => {
                Self::Operator.to_log()
            }
            Self::Operator | Self::Automation { .. } | Self::Client(_) | Self::Anonymous => {
                self.to_log()
            }
        }
    }

    /// The person behind the principal, for standing permissions: the operator is one in a terminal
    /// and in a paired browser. Otherwise the principal itself: text that an event brings in must
    /// not use the permissions of the owner of a trigger.
    pub fn person(&self) -> String {
        if let Some(name) = self.automation() {
            return Self::Automation { name: name.to_owned() }.to_log();
        }
        match self {
            Self::Device { .. } => Self::Operator.to_log(),
            Self::Person { name, .. } => person_identity(name),
            Self::Operator
            | Self::OperatorHttp
            | Self::OperatorToken
            | Self::AgentTask { .. }
            | Self::Automation { .. }
            | Self::Client(_)
            | Self::Anonymous => self.to_log(),
        }
    }

    /// The principal as one word, for a task's log. [`Principal::from_log`] parses it.
    pub fn to_log(&self) -> String {
        match self {
            Self::Operator => "operator".to_owned(),
            Self::OperatorHttp => "operator-http".to_owned(),
            Self::OperatorToken => "operator-token".to_owned(),
            Self::Device { id } => format!("device:{id}"),
            Self::AgentTask { agent, task } => format!("agent:{agent}/{task}"),
            Self::Automation { name } => format!("automation:{name}"),
            Self::Client(name) => format!("client:{name}"),
            Self::Person { name, key } => format!("{}/{key}", person_identity(name)),
            Self::Anonymous => "anonymous".to_owned(),
        }
    }

    /// Parses the output of [`Principal::to_log`]; `None` for a kind that this version does not
    /// know.
    pub fn from_log(word: &str) -> Option<Self> {
        match word.split_once(':') {
            None if word == "operator" => Some(Self::Operator),
            None if word == "operator-http" => Some(Self::OperatorHttp),
            None if word == "operator-token" => Some(Self::OperatorToken),
            None if word == "anonymous" => Some(Self::Anonymous),
            Some(("device", id)) => Some(Self::Device { id: id.to_owned() }),
            Some(("automation", name)) => Some(Self::Automation { name: name.to_owned() }),
            Some(("client", name)) => Some(Self::Client(name.to_owned())),
            Some(("person", by_key)) => {
                let (name, key) = by_key.split_once('/')?;
                Some(Self::Person { name: PersonName::parse(name).ok()?, key: key.to_owned() })
            }
            Some(("agent", at_work)) => {
                let (agent, task) = at_work.split_once('/')?;
                let (agent, task) = (AgentId::parse(agent).ok()?, TaskId::new(task));
                Some(Self::AgentTask { agent, task })
            }
            None | Some(_) => None,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("the operator"),
            Self::OperatorHttp => f.write_str("the operator over HTTP"),
            Self::OperatorToken => f.write_str("a client that shows the operator's token"),
            Self::Device { id } => write!(f, "the browser `{id}`"),
            Self::AgentTask { agent, task } => {
                write!(f, "the agent `{agent}` at work on task `{task}`")
            }
            Self::Automation { name } => write!(f, "the schedule or trigger `{name}`"),
            Self::Client(name) => write!(f, "the client `{name}`"),
            Self::Person { name, .. } => match self.automation() {
                Some(automation) => write!(f, "{name}'s schedule or trigger `{automation}`"),
                None => f.write_str(name.as_str()),
            },
            Self::Anonymous => f.write_str("somebody whom the hub does not know"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "it is for everybody",
            Self::Send | Self::Delegate => "it is for clients of the hub, and for programs of agents that are at work on a task",
            Self::Use => {
                "it is for programs of the hub's own user that no agent started, and for others by the token in its data directory"
            }
            Self::Operate | Self::Administer => "it is for the operator, such as by the command `a2a-hub`",
            Self::Owner => {
                "it is for the operator's own programs on this machine, which no agent started, over the unix socket, and for no \
                 token; run `a2a-hub` in a terminal of your own"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn principal_determines_tenant() {
        let tenant = |name: &str| TenantId::try_from(name.to_owned()).unwrap();
        let agent =
            Principal::AgentTask { agent: AgentId::parse("a").unwrap(), task: TaskId::new("t") };
        let client = || Principal::Client("acme".to_owned());
        let table = [
            (Principal::Operator, "", Some("")),
            (Principal::Operator, "acme", Some("acme")),
            (Principal::Operator, "nobody", None),
            (Principal::OperatorHttp, "acme", Some("acme")),
            (Principal::OperatorHttp, "nobody", None),
            (client(), "", Some("acme")),
            (client(), "acme", Some("acme")),
            (client(), "other", None),
            (client(), "nobody", None),
            (agent.clone(), "", Some("other")),
            (agent.clone(), "other", Some("other")),
            (agent, "acme", None),
            (ada(), "", Some("other")),
            (ada(), "other", Some("other")),
            (ada(), "acme", None),
            (Principal::Automation { name: "nightly".to_owned() }, "", Some("")),
            (Principal::Automation { name: "nightly".to_owned() }, "acme", None),
            (Principal::Anonymous, "", Some("")),
            (Principal::Anonymous, "acme", None),
        ];
        for (principal, named, expected) in table {
            let caller = Caller { principal, tenant: tenant(named) };
            let found = caller
                .tenant_among(|it| ["acme", "other"].contains(&it.as_str()), &tenant("other"));
            assert_eq!(found.as_ref().ok().map(TenantId::as_str), expected, "{caller:?}");
        }
    }

    use super::*;
    use a2a_hub_protocol::{
        id::ContextId,
        message::{Message, Role},
        operation::{
            DeviceRequest, NoticeRequest, Operation, ReadNotices, SendMessage, TopicRequest,
        },
    };

    fn ada() -> Principal {
        Principal::Person { name: PersonName::parse("ada").unwrap(), key: "0a1b".to_owned() }
    }

    fn everybody() -> [Principal; 9] {
        let agent = AgentId::parse("codex").unwrap();
        [
            Principal::Operator,
            Principal::Client("ci".to_owned()),
            Principal::AgentTask { agent, task: TaskId::new("t") },
            Principal::Anonymous,
            Principal::OperatorToken,
            Principal::Automation { name: "nightly".to_owned() },
            Principal::OperatorHttp,
            Principal::Device { id: "ab12cd34".to_owned() },
            ada(),
        ]
    }

    #[test]
    fn owned_automation_is_its_owner() {
        let run = Principal::owned_automation(PersonName::parse("ada").unwrap(), "nightly");
        assert_eq!((run.identity(), run.automation()), (ada().identity(), Some("nightly")));
        assert_eq!(Principal::from_log(&run.to_log()), Some(run.clone()));
        assert_eq!(run.person(), "automation:nightly", "standing permissions are not the owner's");
        assert_eq!(run.to_string(), "ada's schedule or trigger `nightly`");
        assert_eq!(ada().automation(), None);
    }

    #[test]
    fn identity_is_same_across_tasks() {
        let agent = || AgentId::parse("codex").unwrap();
        let by_tree = Principal::of_tree(agent(), "12.3");
        assert_eq!(by_tree.tree(), Some("12.3"));
        let at_work = Principal::AgentTask { agent: agent(), task: TaskId::new("t") };
        assert_eq!((at_work.tree(), Principal::Operator.tree()), (None, None));
        assert_eq!(at_work.identity(), by_tree.identity());
        let identities: std::collections::HashSet<_> =
            everybody().iter().map(Principal::identity).collect();
        assert_eq!(identities.len(), 6, "the operator is one, however that is proven");
        let persons: std::collections::HashSet<_> =
            everybody().iter().map(Principal::person).collect();
        assert_eq!(persons.len(), 8, "a paired browser is the operator's");
        let name = PersonName::parse("ada").unwrap();
        let by_other_key = Principal::Person { name, key: "2c3d".to_owned() };
        assert_eq!(by_other_key.identity(), ada().identity());
        let named = Principal::Client("agent:codex".to_owned());
        assert_ne!(named.identity(), at_work.identity());
    }

    #[test]
    fn principal_round_trips_through_log() {
        for one in everybody() {
            assert_eq!(Principal::from_log(&one.to_log()), Some(one));
        }
        for unknown in
            ["", "Operator", "agent:codex", "agent:/t", "person:ada", "person:A/k", "team:x"]
        {
            assert_eq!(Principal::from_log(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn access_table() {
        let row = |operation: Operation| {
            let access = needed(&operation);
            everybody().map(|one| one.may(access).is_ok())
        };
        let agent = || AgentId::parse("codex").unwrap();
        // operator, client, agent, anybody, token, schedule, http, device, person
        assert_eq!(
            row(Operation::ListPushKeys),
            [true, true, true, true, true, true, true, true, true]
        );
        assert_eq!(
            row(Operation::Status),
            [true, false, false, false, true, false, true, true, false]
        );
        assert_eq!(
            row(Operation::GetAgent { id: agent() }),
            [true, true, true, false, true, false, true, true, true]
        );
        let cancel = Operation::CancelTask { id: TaskId::new("t") };
        assert_eq!(row(cancel), [true, true, true, false, true, false, true, true, true]);
        let notices = Operation::Notice(NoticeRequest::MarkRead(ReadNotices::All { until: None }));
        assert_eq!(row(notices), [true, true, false, false, true, false, true, true, true]);
        let pause = Operation::PauseSchedule { name: "nightly".to_owned() };
        assert_eq!(row(pause), [true, false, false, false, true, false, true, true, false]);
        let list = Operation::Topic(TopicRequest::List);
        assert_eq!(row(list), [true, true, true, false, true, false, true, true, true]);
        let send = |task: Option<&str>| {
            let message =
                Message { task_id: task.map(TaskId::new), ..Message::text(Role::User, "hi") };
            Operation::SendMessage(Box::new(SendMessage::new(message, None).unwrap()))
        };
        assert_eq!(row(send(None)), [true, true, true, false, true, true, true, true, true]);
        assert_eq!(row(send(Some("t"))), [true, true, true, false, true, false, true, true, true]);
        let deregister = Operation::DeregisterAgent { id: agent() };
        assert_eq!(row(deregister), [true, false, false, false, true, false, true, false, false]);
        let reload = Operation::ReloadAgent { id: agent(), accept: None };
        assert_eq!(row(reload), [true, false, false, false, true, false, true, false, false]);
        let delete = Operation::DeleteContext { id: ContextId::new("c") };
        assert_eq!(row(delete), [true, false, false, false, true, false, true, true, false]);
        let revoke = Operation::RevokePlugin { id: agent() };
        assert_eq!(row(revoke), [true, false, false, false, false, false, false, false, false]);
        let pair = Operation::Device(DeviceRequest::Pair);
        assert_eq!(row(pair), [true, false, false, false, false, false, false, false, false]);
        let remove = Operation::Device(DeviceRequest::Remove { id: "ab12cd34".to_owned() });
        assert_eq!(row(remove), [true, false, false, false, true, false, true, true, false]);
        let back_up = Operation::BackUp { file: "/backup.db".into() };
        assert_eq!(row(back_up), [true, false, false, false, false, false, false, false, false]);
    }

    /// A session of a vendor's program may contain data that no client of the hub ever saw.
    #[test]
    fn resuming_session_needs_operate_access() {
        let send = |session: Option<&str>| {
            let metadata = session.map(|name| [("resume".to_owned(), name.into())]);
            let metadata = metadata.map(|facts| facts.into_iter().collect());
            let message = Message { metadata, ..Message::text(Role::User, "go on") };
            SendMessage::new(message, None).unwrap()
        };
        for (session, access) in [(None, Access::Send), (Some("s"), Access::Operate)] {
            assert_eq!(needed(&Operation::SendMessage(Box::new(send(session)))), access);
            assert_eq!(needed(&Operation::StreamMessage(Box::new(send(session)))), access);
        }
    }

    /// The `admin` flag that `rpc.discover` shows for a method agrees with the access table.
    #[test]
    fn admin_methods_need_operate_access() {
        for method in a2a_hub_protocol::hub::methods::METHODS {
            let params = serde_json::from_str(method.example).unwrap();
            let operation = a2a_hub_protocol::hub::methods::operation(method.name, params).unwrap();
            let is_theirs = needed(&operation) >= Access::Operate;
            assert_eq!(is_theirs, method.admin, "{}", method.name);
        }
    }

    #[test]
    fn refusal_names_caller_and_required_access() {
        let [_, client, agent, anybody, token, schedule, http, device, _] = everybody();
        let said = [
            token.may(Access::Owner).unwrap_err().to_string(),
            http.may(Access::Owner).unwrap_err().to_string(),
            client.may(Access::Administer).unwrap_err().to_string(),
            device.may(Access::Administer).unwrap_err().to_string(),
            agent.may(Access::Use).unwrap_err().to_string(),
            anybody.may(Access::Use).unwrap_err().to_string(),
            schedule.may(Access::Delegate).unwrap_err().to_string(),
        ];
        assert_eq!(
            said,
            [
                "a client that shows the operator's token may not do this: it is for the operator's own programs on this machine, \
                 which no agent started, over the unix socket, and for no token; run `a2a-hub` in a terminal of your own",
                "the operator over HTTP may not do this: it is for the operator's own programs on this machine, which no agent \
                 started, over the unix socket, and for no token; run `a2a-hub` in a terminal of your own",
                "the client `ci` may not do this: it is for the operator, such as by the command `a2a-hub`",
                "the browser `ab12cd34` may not do this: it is for the operator, such as by the command `a2a-hub`",
                "the agent `codex` at work on task `t` may not do this: it is for programs of the hub's own user that no \
                 agent started, and for others by the token in its data directory",
                "somebody whom the hub does not know may not do this: it is for programs of the hub's own user that no \
                 agent started, and for others by the token in its data directory",
                "the schedule or trigger `nightly` may not do this: it is for clients of the hub, and for programs of agents that are at \
                 work on a task",
            ]
        );
    }
}
