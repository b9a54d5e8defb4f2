//! Idempotent sends: a message that comes twice within a window, for its client did not hear the answer, begins one task.
//!
//! A client names its messages, but not so that no name comes twice: many send `1`, `2`, `3` from a start of theirs on. So
//! only a request that is the same in all that its agent hears is the same request; anything else is a new one.

use crate::access::Caller;
use a2a_hub_protocol::{
    message::Metadata,
    operation::SendMessage,
    push::{OfferedPush, PushAuthentication, Secret},
    v1,
};
use std::fmt::{self, Write as _};

/// The member of a task's, or a message's, metadata that tells that it answers a request for the second time.
pub const REPEATED: &str = "repeated";

/// Bytes that a request takes beside its message: most fit.
const USUAL: usize = 512;

/// Tells in metadata that this answers a request for the second time.
pub fn mark(metadata: &mut Option<Metadata>) {
    metadata.get_or_insert_with(Metadata::new).insert(REPEATED.to_owned(), true.into());
}

/// A request as text: who asks which agent for what, and where the answer is to be sent. Two requests are the same if and only if
/// their texts are. `whom` is the id of an agent, what is asked of whichever agent it may be, or the id of the task that is said more to: no two
/// are written in the same way. How long the client waits, and how much it is shown, make no difference.
pub fn request(caller: &Caller, whom: &dyn fmt::Debug, send: &SendMessage) -> String {
    let SendMessage { message, working_directory, timeout_ms, push, client, .. } = send;
    // Debug quotes each text, so that none can pass for the end of another.
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
    // A string takes all that is written to it.
    let _ = write!(text, "{request:?}");
    // Those of the default tenant are known by what hubs before tenants wrote.
    if !tenant.is_default() {
        let _ = write!(text, " of {tenant}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Principal;
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
    fn the_same_request_is_the_same_text_however_long_its_client_waits() {
        let first = text(|_| {});
        assert_eq!(text(|_| {}), first);
        assert_eq!(text(|send| send.wait = Wait::No), first);
        assert_eq!(text(|send| send.history_length = Some(0)), first);
        assert_eq!(text(|send| send.after = Some(3)), first);
    }

    #[test]
    fn any_other_request_is_another_text() {
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
