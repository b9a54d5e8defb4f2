//! The one access table: for each operation, the access that it needs, and the rule for people.

use super::Access;
use crate::identity::{
    KeyScope::{Answer, Cancel, Push, Read, Send},
    PersonRule::{self, Always, Initiator, May, Never},
};
use a2a_hub_protocol::{
    boards::BoardRequest,
    operation::{
        DeviceRequest, NoticeRequest, Operation, PeopleRequest, QuestionRequest, RuleRequest,
        TopicRequest, WorktreeRequest,
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
        | Operation::ListDeliveries { .. }
        | Operation::ListTasks(_)
        | Operation::PageTasks(_)
        | Operation::ListContexts(_)
        | Operation::GetContext { .. }
        | Operation::CheckAgent { .. }
        | Operation::WatchHub
        | Operation::GetCard { agent: None } => (Access::Use, May(Read)),
        // A tenant's notices are seen by everybody at once.
        Operation::Notice(NoticeRequest::MarkRead(_)) => (Access::Use, Never),
        Operation::Worktree(WorktreeRequest::Diff { .. }) => (Access::Operate, Initiator(Read)),
        Operation::Worktree(WorktreeRequest::Discard { .. }) => (Access::Operate, Initiator(Cancel)),
        Operation::HandOver(_) => (Access::Operate, Initiator(Send)),
        Operation::ReloadConfig
        | Operation::ListSchedules
        | Operation::RunSchedule { .. }
        | Operation::PauseSchedule { .. }
        | Operation::ResumeSchedule { .. }
        | Operation::Trigger(_)
        | Operation::Topic(TopicRequest::Delete(_))
        // Removing a rule that denies widens what is allowed, and a test looks at directories.
        | Operation::Permission(
            RuleRequest::Add(_) | RuleRequest::Remove { .. } | RuleRequest::Test(_),
        )
        | Operation::ListPlugins
        // The results cover all tenants.
        | Operation::Status
        | Operation::ReadMetrics { .. }
        | Operation::Device(DeviceRequest::List | DeviceRequest::Remove { .. })
        | Operation::DeleteContext { .. }
        | Operation::People(
            PeopleRequest::List | PeopleRequest::Remove { .. } | PeopleRequest::RevokeKey { .. },
        )
        | Operation::Worktree(WorktreeRequest::List | WorktreeRequest::Prune { .. }) => {
            (Access::Operate, Never)
        }
        Operation::RegisterAgent { .. }
        | Operation::DeregisterAgent { .. }
        | Operation::ReloadAgent { .. }
        | Operation::RefreshPlugins => (Access::Administer, Never),
        Operation::AddPlugin(_)
        | Operation::GrantPlugin(_)
        | Operation::DenyPlugin { .. }
        | Operation::RevokePlugin { .. }
        | Operation::RemovePlugin { .. }
        | Operation::BackUp { .. }
        // A device has the operator's access to tasks.
        | Operation::Device(
            DeviceRequest::Pair | DeviceRequest::Pairing { .. } | DeviceRequest::Confirm { .. },
        )
        // A key is access to the hub from anywhere.
        | Operation::People(
            PeopleRequest::Add { .. }
            | PeopleRequest::SetRole { .. }
            | PeopleRequest::NewKey { .. }
            | PeopleRequest::Invite { .. },
        )
        // It changes the operator's files.
        | Operation::Worktree(WorktreeRequest::Apply { .. }) => (Access::Owner, Never),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::hub::methods::{METHODS, operation};

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

    /// No person changes agents, grants, settings or other people.
    #[test]
    fn operators_work_is_for_no_person() {
        for method in METHODS {
            let params = serde_json::from_str(method.example).unwrap();
            let (access, rule) = row(&operation(method.name, params).unwrap());
            if access >= Access::Administer {
                assert_eq!(rule, Never, "{}", method.name);
            }
        }
    }
}
