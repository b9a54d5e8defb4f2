//! Idempotent sends: a message that a client repeats within a window, because it did not receive
//! the answer, starts only one task.
//!
//! Message ids are not unique: many clients count `1`, `2`, `3` from each start. So a request
//! counts as repeated only if all of its content for the agent is the same; anything else is a new
//! request.

use crate::access_control::Caller;
use a2a_hub_protocol::{
    message::Metadata,
    operation::SendMessage,
    push::{OfferedPush, PushAuthentication, Secret},
    v1,
};
use std::fmt::{self, Write as _};

/// Metadata member of a task or message that answers a repeated request.
pub const REPEATED: &str = "repeated";

/// Estimated size of a request without its message, in bytes; sufficient for most.
const USUAL: usize = 512;

/// Marks the answer to a repeated request.
pub fn mark(metadata: &mut Option<Metadata>) {
    metadata.get_or_insert_with(Metadata::new).insert(REPEATED.to_owned(), true.into());
}

/// Canonical text of a request: caller, recipient, content, and notification target. Two requests
/// are the same if and only if their texts are equal. `whom` is the id of an agent, a description
/// of any suitable agent, or the id of an existing task; their debug formats are distinct. The
/// client's waiting time, and the amount of history it requests, are not part of the text.
pub fn request(caller: &Caller, whom: &dyn fmt::Debug, send: &SendMessage) -> String {
    let SendMessage { message, working_directory, timeout_ms, push, client, .. } = send;
    // `Debug` quotes each text, so that none can imitate the end of another.
    let push = push.as_ref().map(|push| {
        let OfferedPush { id, url, token, authentication, form } = push;
        let authentication = authentication.as_ref().map(|authentication| {
            let PushAuthentication { scheme, credentials } = authentication;
            (scheme, credentials.as_ref().map(Secret::expose))
        });
        (id, url, token.as_ref().map(Secret::expose), authentication, form)
    });
    let message = v1::message_text(message);
    let Caller { principal, tenant } = caller;
    let mut text = String::with_capacity(USUAL + 2 * message.len());
    let request = (principal, whom, message, working_directory, timeout_ms, push, client);
    // Writing into a `String` never fails.
    let _ = write!(text, "{request:?}");
    // The default tenant is left out, for compatibility with texts of versions without tenants.
    if !tenant.is_default() {
        let _ = write!(text, " of {tenant}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_control::Principal;
    use a2a_hub_protocol::{
        id::{AgentId, ContextId, MessageId, TenantId},
        message::{Message, Part, Role},
        operation::Wait,
        push::PushForm,
    };

    fn send(change: impl FnOnce(&mut SendMessage)) -> SendMessage {
        let message =
            Message { message_id: MessageId::new("1"), ..Message::text(Role::User, "hi") };
        let mut send = SendMessage::new(message, None).unwrap();
        change(&mut send);
        send
    }

    fn text(change: impl FnOnce(&mut SendMessage)) -> String {
        request(&Principal::Operator.into(), &AgentId::parse("echo").unwrap(), &send(change))
    }

    #[test]
    fn waiting_time_does_not_change_request_text() {
        let first = text(|_| {});
        assert_eq!(text(|_| {}), first);
        assert_eq!(text(|send| send.wait = Wait::No), first);
        assert_eq!(text(|send| send.history_length = Some(0)), first);
        assert_eq!(text(|send| send.after = Some(3)), first);
    }

    #[test]
    fn different_requests_have_different_texts() {
        let push = |token: Option<&str>| OfferedPush {
            id: None,
            url: "https://example.com/".to_owned(),
            token: token.map(|token| Secret::new(token.to_owned())),
            authentication: None,
            form: PushForm::V1,
        };
        let by = |caller: &Principal, agent: &str| {
            request(&caller.into(), &AgentId::parse(agent).unwrap(), &send(|_| {}))
        };
        let tenant = TenantId::parse("acme").unwrap();
        let of_acme = Caller { principal: Principal::Operator, tenant };
        let mut all = vec![
            text(|_| {}),
            request(&of_acme, &AgentId::parse("echo").unwrap(), &send(|_| {})),
            by(&Principal::Operator, "other"),
            by(&Principal::Client("operator".to_owned()), "echo"),
            by(&Principal::Client("Operator, AgentId(\"echo\")".to_owned()), "echo"),
            text(|send| send.message.message_id = MessageId::new("2")),
            text(|send| send.message.context_id = Some(ContextId::new("c"))),
            text(|send| send.message.parts[0] = Part::text("ho")),
            text(|send| send.message.parts.push(Part::text(""))),
            text(|send| {
                let facts = [("workingDirectory".to_owned(), "/".into())];
                send.message.metadata = Some(Metadata::from_iter(facts));
            }),
            text(|send| send.working_directory = Some("/".to_owned())),
            text(|send| send.timeout_ms = Some(1)),
            text(|send| send.client.output_modes = vec!["image/*".to_owned()]),
            text(|send| send.client.extensions = vec!["image/*".to_owned()]),
            text(|send| send.push = Some(push(None))),
            text(|send| send.push = Some(push(Some("a")))),
            text(|send| send.push = Some(push(Some("b")))),
        ];
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
