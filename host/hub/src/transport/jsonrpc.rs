//! JSON-RPC 2.0 requests in the hub's dialect, and their answers, whatever they travel on.

use crate::{
    hub::{Hub, Reply},
    storage::StorageError,
    tasks::Subscription,
};
use a2a_hub_protocol::{
    compat,
    error::{A2aError, ErrorKind},
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
        Ok(Reply::Stream(heard)) => Response::Stream(Box::new(Stream { id, heard })),
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
    heard: Subscription,
}

impl Stream {
    /// The next answer; none at the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.heard.next().await? {
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

    /// The answer that tells the end of the stream, where the transport has no end of its own.
    pub(super) fn end(&self) -> Vec<u8> {
        let (task, context) = (self.heard.task(), self.heard.context());
        let end = json!({ "kind": "stream-end", "taskId": task, "contextId": context });
        result(&self.id, &end)
    }
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
