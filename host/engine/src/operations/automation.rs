//! Runs of schedules and triggers: how one is started, found at work, and replaced; and their
//! owners, with what becomes of the automation of a removed person.

use super::{Hub, Reply};
use crate::conversations::handoff::{self, MAX_HANDOFFS};
use crate::error::HubError;
use a2a_hub_automation::message::AutomatedMessage;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    discovery::did_you_mean::hint,
    identity::{AutomationKind, AutomationSuspended, OwnedAutomation, PersonName},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::{AgentId, TaskId, TenantId},
    operation::{Answer, Operation, PersonInfo},
    task::TaskState,
};
use a2a_hub_store::Head;
use std::collections::BTreeMap;

/// Number of attempts to start a run, one at each poll: an agent may be busy, or load just now.
pub(super) const ATTEMPTS: u32 = 30;

/// Error of starting a run.
pub(super) enum RunRefusal {
    /// Another attempt may succeed.
    Refused(A2aError),
    /// The hub cannot say now.
    Unknown(HubError),
}

impl From<RunRefusal> for HubError {
    fn from(why: RunRefusal) -> Self {
        match why {
            RunRefusal::Refused(why) => why.into(),
            RunRefusal::Unknown(why) => why,
        }
    }
}

/// Principal as which a run begins its task, with its tenant.
pub(super) struct AutomationRunner {
    pub(super) by: Principal,
    pub(super) tenant: TenantId,
}

/// Owner of a schedule or trigger, for lists.
pub(super) struct OwnerInfo {
    /// Name; none for the operator.
    pub(super) name: Option<String>,
    /// True if the owner has to accept it.
    pub(super) offered: bool,
    /// Tenant of its runs; none while it has no owner.
    tenant: Option<TenantId>,
}

/// Schedules and triggers with their owners.
#[derive(Clone, Copy)]
pub(super) struct OwnedRuns<'h>(pub(super) &'h Hub);

impl OwnedRuns<'_> {
    /// Principal as which a schedule or trigger begins tasks now.
    ///
    /// # Errors
    ///
    /// Its owner may not begin any.
    pub(super) fn runner(
        &self,
        kind: AutomationKind,
        name: &str,
        owner: Option<&PersonName>,
    ) -> Result<AutomationRunner, AutomationSuspended> {
        let Some(owner) = owner else {
            let by = Principal::Automation { name: name.to_owned() };
            return Ok(AutomationRunner { by, tenant: TenantId::default() });
        };
        let (owner, tenant) = self.0.people.runner(&OwnedAutomation { kind, name, owner })?;
        Ok(AutomationRunner { by: Principal::owned_automation(owner, name), tenant })
    }

    /// Owner of a schedule or trigger, for lists.
    pub(super) fn owner_info(
        &self,
        kind: AutomationKind,
        name: &str,
        owner: Option<&PersonName>,
    ) -> OwnerInfo {
        let Some(owner) = owner else {
            return OwnerInfo { name: None, offered: false, tenant: Some(TenantId::default()) };
        };
        match self.0.people.holder(&OwnedAutomation { kind, name, owner }) {
            Some((person, tenant, accepted)) => OwnerInfo {
                name: Some(person.to_string()),
                offered: !accepted,
                tenant: Some(tenant),
            },
            None => OwnerInfo { name: Some(owner.to_string()), offered: false, tenant: None },
        }
    }

    /// True if a caller sees a schedule or trigger: an operator that names no tenant sees all, and
    /// others see those of their tenant.
    pub(super) fn sees_automation(&self, caller: &Caller, owner: &OwnerInfo) -> bool {
        let sees_all = caller.principal.is_operator() && caller.tenant.is_default();
        sees_all || owner.tenant.as_ref() == Some(&caller.tenant)
    }

    /// Accepts automation that passed to the calling person; the operator accepts it for that
    /// person. `agent` is the one that gets the messages: a key for other agents accepts none.
    pub(super) async fn accept_automation(
        &self,
        caller: &Caller,
        automation: &OwnedAutomation<'_>,
        agent: Option<&AgentId>,
    ) -> Result<(), HubError> {
        let rights = self.0.rights_of(&caller.principal)?;
        if let Some(rights) = &rights {
            let agent = agent.map(|named| self.0.named(named).unwrap_or_else(|_| named.clone()));
            rights.may_accept_automation(agent.as_ref())?;
        }
        Ok(self.0.people.accept(automation, rights.as_ref().map(|rights| &rights.name)).await?)
    }

    /// Schedules and triggers of the configuration that have an owner, with those owners.
    pub(super) fn owned_automation(&self) -> Vec<(AutomationKind, String, PersonName)> {
        let schedules = self.0.schedules.as_ref().map(|them| them.all()).unwrap_or_default();
        let triggers = self.0.triggers.as_ref().map(|them| them.all()).unwrap_or_default();
        let schedules = schedules.iter().filter_map(|(name, it)| {
            Some((AutomationKind::Schedule, name.clone(), it.config.owner.clone()?))
        });
        let triggers = triggers.iter().filter_map(|(name, it)| {
            Some((AutomationKind::Trigger, name.clone(), it.config.owner.clone()?))
        });
        schedules.chain(triggers).collect()
    }

    /// Failure that tells how many schedules and triggers start no runs because of their owners. It
    /// names nobody: everybody who reaches the hub may read it.
    pub(super) fn suspended_automation(&self) -> Option<String> {
        let all = self.owned_automation();
        let is_suspended = |(kind, name, owner): &&(AutomationKind, String, PersonName)| {
            self.runner(*kind, name, Some(owner)).is_err()
        };
        match all.iter().filter(is_suspended).count() {
            0 => None,
            count => Some(format!(
                "schedules and triggers that start no runs, because of their owners: {count}; `a2a-hub schedule list` \
                 and `a2a-hub trigger list` say why"
            )),
        }
    }

    /// Unfinished tasks that a person began. None if they cannot be read: a person is removed all
    /// the same.
    pub(super) async fn tasks_of_person(&self, person: &PersonInfo) -> Vec<TaskId> {
        let Ok(name) = PersonName::parse(&person.name) else { return Vec::new() };
        let Ok(tenant) = TenantId::parse(&person.tenant) else { return Vec::new() };
        let by = Principal::Person { name, key: String::new() };
        self.0.tasks.unfinished_of(&by.identity(), tenant).await.unwrap_or_else(|why| {
            tracing::warn!(%why, "cannot read which tasks of a removed person go on");
            Vec::new()
        })
    }
}

/// A schedule or trigger with its owner.
///
/// # Errors
///
/// It has none, so that it passed to nobody.
pub(super) fn owned<'a>(
    kind: AutomationKind,
    name: &'a str,
    owner: Option<&'a PersonName>,
) -> Result<OwnedAutomation<'a>, HubError> {
    let owner = owner.ok_or_else(|| {
        let why = format!("the {} `{name}` is the operator's, and waits for nobody", kind.word());
        A2aError::invalid("name", why)
    })?;
    Ok(OwnedAutomation { kind, name, owner })
}

/// Error of a run that the operator asked for.
pub(super) fn suspension_error(
    kind: AutomationKind,
    name: &str,
    why: &AutomationSuspended,
) -> HubError {
    let why = format!("the {} `{name}` starts no runs: {why}", kind.word());
    A2aError::new(ErrorKind::UnsupportedOperation, why).into()
}

/// Starts a run as the task `id`, unless that exists.
pub(super) async fn start_run(
    hub: &Hub,
    by: &Principal,
    message: AutomatedMessage<'_>,
    id: TaskId,
) -> Result<TaskId, RunRefusal> {
    let is_there = hub.tasks.stored(&id).await;
    if is_there.map_err(|why| RunRefusal::Unknown(why.into()))?.is_some() {
        return Ok(id);
    }
    let send = message.request(id.clone()).map_err(RunRefusal::Refused)?;
    let sent = hub.handle(by.clone(), None, Operation::SendMessage(Box::new(send))).await;
    match sent.map_err(RunRefusal::Refused)? {
        Reply::One(Answer::Task(task)) => Ok(task.id),
        Reply::One(_) | Reply::Stream(_) => Ok(id),
    }
}

/// State of a run's task, or of the one that goes on with it; none if the task was deleted.
pub(super) async fn state_of(hub: &Hub, task: &TaskId) -> Result<Option<TaskState>, HubError> {
    Ok(latest_of(hub, task).await?.map(|head| head.state))
}

/// Task that goes on with a run, after all handoffs.
async fn latest_of(hub: &Hub, task: &TaskId) -> Result<Option<Head>, HubError> {
    let mut latest = hub.tasks.find_head(task).await?;
    for _ in 0..MAX_HANDOFFS {
        let over = latest.as_ref().filter(|head| head.state == TaskState::Canceled);
        let Some(over) = over else { break };
        let over = hub.tasks.stored(&over.task).await?;
        let Some(next) = over.and_then(|over| handoff::successor(&over.task)) else { break };
        match hub.tasks.find_head(&next).await? {
            Some(head) => latest = Some(head),
            None => break,
        }
    }
    Ok(latest)
}

/// True if the latest run is still at work. `is_over` spares the next question once it is not.
pub(super) async fn is_at_work(
    hub: &Hub,
    last: Option<&String>,
    is_over: &mut bool,
) -> Result<bool, HubError> {
    let Some(task) = last.filter(|_| !*is_over) else { return Ok(false) };
    let state = state_of(hub, &TaskId::new(task.as_str())).await?;
    *is_over = state.is_none_or(TaskState::is_final);
    Ok(!*is_over)
}

/// Cancels the previous run of a schedule or trigger.
pub(super) async fn replace(hub: &Hub, by: &Principal, before: &TaskId) -> Result<(), HubError> {
    let latest = latest_of(hub, before).await?;
    match hub.tasks.cancel(latest.as_ref().map_or(before, |head| &head.task), by.clone()).await {
        Ok(_) => Ok(()),
        // It has ended meanwhile.
        Err(why) if why.error().kind == ErrorKind::TaskNotCancelable => Ok(()),
        Err(why) => Err(why),
    }
}

/// The schedule or trigger of this name; `kind` is `schedule` or `trigger`.
///
/// # Errors
/// None has that name: the error names a similar one.
pub(super) fn find_named<T>(
    mut all: BTreeMap<String, T>,
    kind: &str,
    name: &str,
) -> Result<T, HubError> {
    all.remove(name).ok_or_else(|| {
        let hint = hint(name, all.keys().map(String::as_str));
        let hint = hint.unwrap_or_else(|| {
            format!(
                "`a2a-hub {kind} list` lists them; `[{kind}.<id>]` in the configuration makes one"
            )
        });
        A2aError::invalid("name", format!("no {kind} is called `{name}`; {hint}")).into()
    })
}
