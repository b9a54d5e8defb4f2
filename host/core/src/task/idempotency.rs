//! Idempotent sends: a message that a client repeats within a window, because it did not receive
//! the answer, starts only one task.
//!
//! Message ids are not unique: many clients count `1`, `2`, `3` from each start, and test suites
//! use one id with many options. A retry by a client's library is the same request: method,
//! binding, version and parameters. Only that is a repeat; anything else is a new request.

use crate::access_control::{Caller, Principal};
use a2a_hub_protocol::{
    binding::service_params,
    message::Metadata,
    operation::{RequestForm, SendMessage},
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

/// Canonical text of a request. Two requests are the same if and only if their texts are equal.
pub struct RequestText {
    text: String,
    /// Length of the part that older hubs used as the whole text.
    older: usize,
}

impl RequestText {
    /// Canonical text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Text that hubs before this rule stored for the request: caller, recipient, content and
    /// notification target. The tasks of such a hub are found by it, so that a retry that spans
    /// the hub's update begins no second task.
    pub fn of_older_hub(&self) -> &str {
        &self.text[..self.older]
    }
}

/// Canonical text of a request: caller, recipient, method, version, binding and parameters. `whom`
/// is the id of an agent, a description of any suitable agent, or the id of an existing task; their
/// debug formats are distinct. Parameters are compared as read, so that a member with its default
/// value equals an absent one. Headers are no part of the text: a reconnecting client changes
/// `Last-Event-ID`, and a traced one `traceparent`.
pub fn request(caller: &Caller, whom: &dyn fmt::Debug, send: &SendMessage) -> RequestText {
    let SendMessage { message, working_directory, timeout_ms, push, client, .. } = send;
    let SendMessage { wait, history_length, metadata, form, .. } = send;
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
    // Older hubs did not tell the two apart, and each sees the other's tasks.
    let is_over_http = *principal == Principal::OperatorHttp;
    let principal = if is_over_http { &Principal::Operator } else { principal };
    let mut text = String::with_capacity(USUAL + 2 * message.len());
    let request = (principal, whom, message, working_directory, timeout_ms, push, client);
    // Writing into a `String` never fails.
    let _ = write!(text, "{request:?}");
    // The default tenant is left out, for compatibility with texts of versions without tenants.
    if !tenant.is_default() {
        let _ = write!(text, " of {tenant}");
    }
    let older = text.len();
    let RequestForm { streams, official, headerless } = form;
    // Service parameters are the headers of transports without headers.
    let is_param = |name: &str| name != service_params::MEMBER;
    let metadata: Vec<_> =
        metadata.iter().flatten().filter(|(name, _)| is_param(name.as_str())).collect();
    let _ =
        write!(text, " as {:?}", (streams, official, headerless, wait, history_length, metadata));
    RequestText { text, older }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{AgentId, ContextId, MessageId, TenantId},
        interface::{Binding, Version},
        message::{Message, Part, Role},
        operation::Wait,
        push::PushForm,
    };
    use std::time::Duration;

    fn send(change: impl FnOnce(&mut SendMessage)) -> SendMessage {
        let message =
            Message { message_id: MessageId::new("1"), ..Message::text(Role::User, "hi") };
        let mut send = SendMessage::new(message, None).unwrap();
        change(&mut send);
        send
    }

    fn text(change: impl FnOnce(&mut SendMessage)) -> String {
        let echo = AgentId::parse("echo").unwrap();
        request(&Principal::Operator.into(), &echo, &send(change)).text
    }

    fn facts(name: &str, value: &str) -> Option<Metadata> {
        Some(Metadata::from_iter([(name.to_owned(), value.into())]))
    }

    #[test]
    fn headers_do_not_change_request_text() {
        let first = text(|_| {});
        assert_eq!(text(|_| {}), first);
        assert_eq!(text(|send| send.after = Some(3)), first);
        assert_eq!(text(|send| send.trace = Some(Box::default())), first);
        let params = facts(service_params::MEMBER, "traceparent");
        assert_eq!(text(|send| send.metadata = params), first);
    }

    /// A hub that is updated between a request and its retry knows the request by its older text.
    #[test]
    fn older_text_ignores_form_and_options() {
        let echo = AgentId::parse("echo").unwrap();
        let older = |change: fn(&mut SendMessage)| {
            let text = request(&Principal::Operator.into(), &echo, &send(change));
            text.of_older_hub().to_owned()
        };
        let first = older(|_| {});
        assert_eq!(older(|send| send.wait = Wait::No), first);
        assert_eq!(older(|send| send.form.streams = true), first);
        assert_ne!(older(|send| send.timeout_ms = Some(1)), first);
        let over_http = request(&Principal::OperatorHttp.into(), &echo, &send(|_| {}));
        assert_eq!(over_http.of_older_hub(), first);
        insta::assert_snapshot!(first, @r#"(Operator, AgentId("echo"), "{\"messageId\":\"1\",\"parts\":[{\"text\":\"hi\"}],\"role\":\"ROLE_USER\"}", None, None, None, ClientCapabilities { extensions: [], output_modes: [] })"#);
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
            request(&caller.into(), &AgentId::parse(agent).unwrap(), &send(|_| {})).text
        };
        let tenant = TenantId::parse("acme").unwrap();
        let of_acme = Caller { principal: Principal::Operator, tenant };
        let mut all = vec![
            text(|_| {}),
            request(&of_acme, &AgentId::parse("echo").unwrap(), &send(|_| {})).text,
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
            text(|send| send.wait = Wait::No),
            text(|send| send.wait = Wait::AtMost(Duration::from_secs(1))),
            text(|send| send.history_length = Some(0)),
            text(|send| send.metadata = facts("a", "b")),
            text(|send| send.metadata = facts("a", "c")),
            text(|send| send.form.streams = true),
            text(|send| send.form.headerless = true),
        ];
        for version in Version::ALL {
            all.extend(
                Binding::ALL
                    .map(|binding| text(|send| send.form.official = Some((version, binding)))),
            );
        }
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
