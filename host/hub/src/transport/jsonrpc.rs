//! JSON-RPC 2.0 requests in the hub's dialect, and their answers, whatever they travel on.

use crate::{
    hub::{Hub, Listening, Reply},
    storage::StorageError,
};
use a2a_hub_protocol::{
    compat,
    error::{A2aError, ErrorKind},
    hub_event::HubEvent,
    jsonrpc::{self, RequestId},
    operation::Answer,
};
use serde_json::{Value, json};

/// What a request comes to.
pub(super) enum Response {
    /// Nothing: it was a notification.
    None,
    /// One answer, ready to be sent.
    One(Vec<u8>),
    /// Several, as they come.
    Stream(Box<Stream>),
}

/// Reads a request, has the hub carry it out, and writes the answer.
pub(super) async fn respond(hub: &Hub, request: &[u8]) -> Response {
    let jsonrpc::Request { id, operation } = jsonrpc::read(request);
    let reply = match operation {
        Ok(operation) => hub.handle(operation).await,
        Err(why) => Err(why),
    };
    let Some(id) = id else { return Response::None };
    match reply {
        Ok(Reply::One(answer)) => Response::One(result(&id, &answer_json(&answer))),
        Ok(Reply::Stream(heard)) => Response::Stream(Box::new(Stream { id, heard, over: false })),
        Err(why) => Response::One(error(&id, &why)),
    }
}

/// The answer to bytes that are no request at all.
pub(super) fn unreadable(why: &A2aError) -> Vec<u8> {
    error(&RequestId::Null, why)
}

/// A stream of answers under one id.
pub(super) struct Stream {
    id: RequestId,
    heard: Listening,
    over: bool,
}

impl Stream {
    /// The next answer; none at the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        let heard = match &mut self.heard {
            _ if self.over => return None,
            Listening::Task(heard) => heard,
            Listening::Hub(heard) => {
                let answer = match heard.next().await {
                    Ok(event) => hub_event(&event),
                    // Told on every transport: there is more, and the client is to ask anew.
                    Err(end) => {
                        self.over = true;
                        json!({ "kind": "stream-end", "reason": end, "retryable": true })
                    }
                };
                return Some(result(&self.id, &answer));
            }
        };
        loop {
            match heard.next().await? {
                Ok(event) => {
                    // What the client itself said, it need not hear.
                    if let Some(event) = compat::write_event(&event) {
                        return Some(result(&self.id, &event));
                    }
                }
                Err(why) => return Some(error(&self.id, &broken(&why))),
            }
        }
    }

    /// The answer that tells the end of the stream, where the transport has no end of its own and the last answer did
    /// not tell.
    pub(super) fn end(&self) -> Option<Vec<u8>> {
        let Listening::Task(heard) = &self.heard else { return None };
        let (task, context) = (heard.task(), heard.context());
        let end = json!({ "kind": "stream-end", "taskId": task, "contextId": context });
        Some(result(&self.id, &end))
    }
}

fn hub_event(event: &HubEvent) -> Value {
    let mut told = json!(event);
    told["kind"] = json!("hub-event");
    told
}

fn broken(why: &StorageError) -> A2aError {
    tracing::error!(%why, "a stream broke");
    A2aError::new(
        ErrorKind::Internal,
        "the stream broke; `tasks/get` tells what became of the task",
    )
}

fn answer_json(answer: &Answer) -> Value {
    match answer {
        Answer::Task(task) => compat::write_task(task, None),
        Answer::Message(message) => compat::write_message(message),
        Answer::Tasks { tasks, artifacts } => {
            tasks.iter().map(|task| compat::write_listed(task, *artifacts)).collect()
        }
        Answer::Contexts(contexts) => json!(contexts),
        Answer::Context(info, said) => {
            let mut context = json!(info);
            context["messages"] = said.iter().map(compat::write_message).collect();
            context
        }
        Answer::Forgotten { context, tasks } => json!({ "id": context, "deletedTasks": tasks }),
        Answer::Status(status) => json!(status),
        Answer::Agents(agents) => json!(agents),
        Answer::Agent(agent) => json!(agent),
        Answer::Health(health) => json!(health),
        Answer::Deregistered(agent) => json!(agent),
        Answer::Discovery(document) => document.clone(),
    }
}

fn result(id: &RequestId, result: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_json(), "result": result }))
}

fn error(id: &RequestId, why: &A2aError) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id.to_json(), "error": why.to_hub_json() }))
}

/// JSON text in one line: serde_json writes no line breaks.
fn line(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
