//! The one access table: for each operation, the access that it needs, and the rule for people.

use super::Access;
use crate::identity::{
    KeyScope::{Admin, AdminGrant, Answer, Apply, Cancel, Push, Read, Send},
    PersonRule::{self, Always, Initiator, May, Never},
};
use a2a_hub_protocol::{
    boards::BoardRequest,
    operation::{
        DeviceRequest, NoticeRequest, Operation, PeopleRequest, QuestionRequest, ReviewRequest,
        RuleRequest, TopicRequest, TriggerRequest, UsageKey, UsageQuery, WorktreeRequest,
    },
};

/// Access that this operation needs.
pub fn needed(operation: &Operation) -> Access {
    row(operation).0
}

/// Rule for people with this operation. It counts for them in place of the access.
pub fn rule_for_people(operation: &Operation) -> PersonRule {
    row(operation).1
}

fn row(operation: &Operation) -> (Access, PersonRule) {
    match operation {
        Operation::ListPushKeys => (Access::Public, Always),
        // The secrets of the pairing and of the invitation are checked.
        Operation::Device(DeviceRequest::Present(_))
        | Operation::People(PeopleRequest::Join { .. }) => (Access::Public, Never),
        // The session may contain data that no client of the hub ever saw.
        Operation::SendMessage(send) | Operation::StreamMessage(send)
            if send.resumes_a_session() =>
        {
            (Access::Operate, Never)
        }
        Operation::SendMessage(send) | Operation::StreamMessage(send) => {
            let (access, rule) = match send.message.task_id {
                None => (Access::Send, May(Send)),
                Some(_) => (Access::Delegate, Initiator(Answer)),
            };
            // The scope for the webhook is checked besides.
            (if send.push.is_none() { access } else { Access::Use }, rule)
        }
        Operation::CancelTask { .. } => (Access::Delegate, Initiator(Cancel)),
        Operation::Topic(TopicRequest::Publish { .. }) => (Access::Delegate, May(Send)),
        Operation::Board(BoardRequest::Change(_)) => (Access::Delegate, Never),
        Operation::GetTask { .. }
        | Operation::Resubscribe { .. }
        | Operation::GetTree(_)
        | Operation::Topic(TopicRequest::Read(_) | TopicRequest::List)
        | Operation::Board(BoardRequest::Read { .. })
        | Operation::ListAgents { .. }
        | Operation::FindAgents(_)
        | Operation::GetAgent { .. }
        | Operation::GetCard { agent: Some(_) }
        | Operation::ListCards => (Access::Delegate, May(Read)),
        Operation::Ping | Operation::Discover => (Access::Delegate, Always),
        Operation::People(PeopleRequest::Me) => (Access::Use, Always),
        Operation::SetPushConfig { .. }
        | Operation::GetPushConfig { .. }
        | Operation::ListPushConfigs { .. }
        | Operation::DeletePushConfig { .. }
        | Operation::RetryDeliveries { .. } => (Access::Use, Initiator(Push)),
        // An agent's program must neither see nor answer requests for permission. The tasks of the
        // answered questions are checked one by one.
        Operation::Question(QuestionRequest::Answer { .. } | QuestionRequest::Postpone { .. }) => {
            (Access::Use, May(Answer))
        }
        Operation::Question(QuestionRequest::List(_) | QuestionRequest::History { .. })
        // Notices are about tasks of others.
        | Operation::Notice(NoticeRequest::List(_))
        | Operation::Permission(RuleRequest::List | RuleRequest::Suggest)
        // It names the principals that answered requests for permission.
        | Operation::GetTimeline(_)
        | Operation::ListDeliveries { .. }
        | Operation::ListTasks(_)
        | Operation::PageTasks(_)
        | Operation::Search(_)
        | Operation::ListContexts(_)
        | Operation::GetContext { .. }
        | Operation::CheckAgent { .. }
        | Operation::WatchHub(_)
        | Operation::GetCard { agent: None } => (Access::Use, May(Read)),
        // A sum by tenant covers all tenants.
        Operation::Usage(UsageQuery { by: UsageKey::Tenant, .. }) => (Access::Operate, Never),
        Operation::Usage(_) => (Access::Use, May(Read)),
        // A tenant's notices are seen by everybody at once.
        Operation::Notice(NoticeRequest::MarkRead(_)) => (Access::Use, Never),
        Operation::Worktree(WorktreeRequest::Diff { .. }) => (Access::Operate, Initiator(Read)),
        // A review quotes the changes, and only its owner sees it.
        Operation::Review(ReviewRequest::Show { .. }) => (Access::Operate, Initiator(Read)),
        // Its message is checked besides, as one that the person sends.
        Operation::Review(
            ReviewRequest::Comment { .. }
            | ReviewRequest::Remove { .. }
            | ReviewRequest::Discard { .. }
            | ReviewRequest::Send { .. },
        ) => (Access::Operate, Initiator(Send)),
        Operation::Worktree(WorktreeRequest::Discard { .. }) => (Access::Operate, Initiator(Cancel)),
        Operation::HandOver(_) | Operation::RetryNow { .. } => (Access::Operate, Initiator(Send)),
        // Those of the person's tenant are listed.
        Operation::ListSchedules | Operation::Trigger(TriggerRequest::List) => {
            (Access::Operate, May(Read))
        }
        // Whether it passed to the person is checked besides, and the agents of the key.
        Operation::AcceptSchedule { .. } | Operation::Trigger(TriggerRequest::Accept(_)) => {
            (Access::Operate, May(Send))
        }
        // Settings, schedules and triggers are the operator's, in one file for all tenants.
        Operation::ReloadConfig
        | Operation::RunSchedule { .. }
        | Operation::PauseSchedule { .. }
        | Operation::ResumeSchedule { .. }
        | Operation::Trigger(
            TriggerRequest::Run(_) | TriggerRequest::Pause(_) | TriggerRequest::Resume(_),
        )
        // The results cover all agents of the operator.
        | Operation::Notifier(_)
        | Operation::Topic(TopicRequest::Delete(_))
        // Removing a rule that denies widens what is allowed, and a test looks at directories.
        | Operation::Permission(
            RuleRequest::Add(_) | RuleRequest::Remove { .. } | RuleRequest::Test(_),
        )
        // The results cover all tenants.
        | Operation::Status
        | Operation::ReadMetrics { .. }
        | Operation::Device(DeviceRequest::List | DeviceRequest::Remove { .. })
        | Operation::DeleteContext { .. }
        // They remove files and refs in repositories that tenants share.
        | Operation::Worktree(WorktreeRequest::List | WorktreeRequest::Prune { .. }) => {
            (Access::Operate, Never)
        }
        // The people are those of the caller's tenant.
        Operation::People(
            PeopleRequest::List | PeopleRequest::Remove { .. } | PeopleRequest::RevokeKey { .. },
        ) => (Access::Operate, May(Admin)),
        // A person of the default tenant only: agents serve all tenants.
        Operation::ListPlugins => (Access::Operate, May(AdminGrant)),
        Operation::RegisterAgent { .. }
        | Operation::DeregisterAgent { .. }
        | Operation::ReloadAgent { .. }
        | Operation::RefreshPlugins => (Access::Administer, Never),
        Operation::GrantPlugin(_)
        | Operation::DenyPlugin { .. }
        | Operation::RevokePlugin { .. } => (Access::Owner, May(AdminGrant)),
        // Components are files of this machine, and a copy of the store has all tenants.
        Operation::AddPlugin(_)
        | Operation::RemovePlugin { .. }
        | Operation::BackUp { .. }
        // A device has the operator's access to tasks.
        | Operation::Device(
            DeviceRequest::Pair | DeviceRequest::Pairing { .. } | DeviceRequest::Confirm { .. },
        )
        => (Access::Owner, Never),
        // A key is access to the hub from anywhere. A person gives no more than the own key has,
        // to people of the own tenant.
        Operation::People(
            PeopleRequest::Add { .. }
            | PeopleRequest::SetRole { .. }
            | PeopleRequest::NewKey { .. }
            | PeopleRequest::Invite { .. },
        ) => (Access::Owner, May(Admin)),
        // It changes the operator's files: of the checkout that the task came from, and without
        // those that programs obey, if a person asks.
        Operation::Worktree(WorktreeRequest::Apply { .. }) => (Access::Owner, Initiator(Apply)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{KeyScope, KeyScopes, PersonName, PersonRights, PersonRole};
    use a2a_hub_protocol::{
        hub::methods::{METHODS, operation},
        id::TenantId,
    };

    /// The table as a whole: a method that a person may call by mistake changes this snapshot.
    #[test]
    fn access_of_methods() {
        let rows = METHODS.iter().map(|method| {
            let operation =
                operation(method.name, serde_json::from_str(method.example).unwrap()).unwrap();
            let (access, rule) = row(&operation);
            format!("{:28} {access:?} {rule:?}", method.name)
        });
        insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"));
    }

    fn rights(role: PersonRole, scopes: &[&str]) -> PersonRights {
        PersonRights {
            name: PersonName::parse("ada").unwrap(),
            tenant: TenantId::default(),
            role,
            scopes: KeyScopes::parse(scopes.iter().copied()).unwrap(),
            expires_at: None,
        }
    }

    /// Each method with each role and each key of one scope: only the scope that the table names
    /// counts, and only with a role that has it.
    #[test]
    fn each_method_needs_its_role_and_scope() {
        for method in METHODS {
            let params = serde_json::from_str(method.example).unwrap();
            let (access, rule) = row(&operation(method.name, params).unwrap());
            for role in PersonRole::ALL {
                for scope in KeyScope::ALL {
                    let key = rights(role, &[scope.name()]);
                    let is_owners = matches!(scope, Admin | AdminGrant);
                    let has_role = match role {
                        PersonRole::Viewer => scope == Read,
                        PersonRole::Member => !is_owners,
                        PersonRole::Owner => true,
                    };
                    let may = match rule {
                        Always => true,
                        Never => false,
                        May(needed) | Initiator(needed) => needed == scope && has_role,
                    };
                    assert_eq!(key.may(rule).is_ok(), may, "{} {role:?} {scope:?}", method.name);
                }
                let may = rights(role, &[]).may(rule).is_ok();
                let is_explicit = match rule {
                    May(scope) | Initiator(scope) => scope.is_explicit(),
                    Always | Never => false,
                };
                assert!(!(may && is_explicit), "{} is for keys that name it", method.name);
                assert!(!may || access < Access::Administer, "{}", method.name);
            }
            if access >= Access::Administer {
                let is_given = matches!(rule, May(Admin | AdminGrant) | Initiator(Apply));
                assert!(rule == Never || is_given, "{} is the operator's", method.name);
            }
        }
    }
}
