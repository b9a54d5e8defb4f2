//! Sends the same message over each binding and version, in its own format. The responses are
//! parsed into one model, so that one table of cases covers them all.

use super::{Endpoint, events};
use crate::hub::InProcessHub;
use a2a_hub_protocol::{event::StreamResponse, id::MessageId, v1, v03};
use a2a_hub_tests::{GrpcClient, RpcError};
use anyhow::{Context as _, Result, bail};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    time::timeout,
};

/// Timeout of a response or a stream.
const WITHIN: Duration = Duration::from_secs(30);

/// Version of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V03,
}

/// Binding of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    Rest,
    Grpc,
    Socket,
}

/// All bindings in both versions.
pub(super) fn ways() -> impl Iterator<Item = (Binding, Version)> {
    let bindings = [Binding::JsonRpc, Binding::Rest, Binding::Grpc, Binding::Socket];
    bindings.into_iter().flat_map(|binding| [(binding, Version::V1), (binding, Version::V03)])
}

/// Message to an agent.
#[derive(Clone, Default)]
pub(super) struct Saying {
    pub(super) agent: &'static str,
    /// Id of the message; random if absent.
    pub(super) id: Option<&'static str>,
    pub(super) text: &'static str,
    /// Media type of a file next to the text.
    pub(super) file: Option<&'static str>,
    pub(super) metadata: Option<Value>,
    pub(super) task: Option<String>,
    /// Extensions that the client requests.
    pub(super) extensions: Option<&'static str>,
    pub(super) output_modes: Vec<&'static str>,
    /// True for a stream.
    pub(super) live: bool,
}

/// Response to a message.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) told: Vec<StreamResponse>,
    /// Extensions that the response activates; absent for a stream of gRPC.
    pub(super) active: Option<String>,
}

/// Code of an error (JSON-RPC, HTTP or gRPC) and its reason.
pub(super) type Refused = (i64, String);

type Answer = Result<(Vec<Value>, Option<String>), Refused>;

/// Sends the message over a binding in a version.
pub(super) async fn say(
    hub: &InProcessHub,
    way: (Binding, Version),
    saying: &Saying,
) -> Result<Result<Heard, Refused>> {
    let (binding, version) = way;
    let mut params = params(way, saying);
    let answer = match binding {
        Binding::JsonRpc => over_json_rpc(hub, version, saying, &params).await?,
        Binding::Rest => over_rest(hub, version, saying, &params).await?,
        Binding::Grpc => {
            address(version, saying, &mut params);
            over_grpc(hub, version, saying, params).await?
        }
        Binding::Socket => {
            params["tenant"] = json!(saying.agent);
            let named = if version == Version::V1 { "1.0" } else { "0.3" };
            let service = json!({ "A2A-Version": named, "A2A-Extensions": saying.extensions });
            params["metadata"] = json!({ "a2a-service-parameters": service });
            over_socket(hub, version, saying, &params).await?
        }
    };
    let (told, active) = match answer {
        Ok(answer) => answer,
        Err(refused) => return Ok(Err(refused)),
    };
    let read = |item: Value| match way {
        (_, Version::V1) => v1::read_stream_response(item),
        (Binding::JsonRpc | Binding::Socket, Version::V03) => v03::json::read_stream_response(item),
        (Binding::Rest | Binding::Grpc, Version::V03) => v03::proto::read_stream_response(item),
    };
    let told = told.into_iter().map(read).collect::<Result<_, _>>();
    Ok(Ok(Heard { told: told.with_context(|| format!("{way:?}"))?, active }))
}

/// Adds the agent's name, because gRPC has no paths: 1.0 has `tenant`, and 0.3 uses the hub's
/// metadata.
fn address(version: Version, saying: &Saying, params: &mut Value) {
    match version {
        Version::V1 => params["tenant"] = json!(saying.agent),
        Version::V03 => params["metadata"] = json!({ "targetAgent": saying.agent }),
    }
}

fn params(way: (Binding, Version), saying: &Saying) -> Value {
    let Saying { id, text, file, metadata, task, output_modes, .. } = saying;
    let (mut parts, role, parts_name) = match way {
        (_, Version::V1) => (vec![json!({ "text": text })], "ROLE_USER", "parts"),
        (Binding::JsonRpc | Binding::Socket, Version::V03) => {
            (vec![json!({ "kind": "text", "text": text })], "user", "parts")
        }
        (Binding::Rest | Binding::Grpc, Version::V03) => {
            (vec![json!({ "text": text })], "ROLE_USER", "content")
        }
    };
    parts.extend(file.map(|media| match way {
        (_, Version::V1) => json!({ "raw": "AA==", "mediaType": media }),
        (Binding::JsonRpc | Binding::Socket, Version::V03) => {
            json!({ "kind": "file", "file": { "bytes": "AA==", "mimeType": media } })
        }
        (Binding::Rest | Binding::Grpc, Version::V03) => {
            json!({ "file": { "fileWithBytes": "AA==", "mimeType": media } })
        }
    }));
    let id = id.map_or_else(|| MessageId::fresh().to_string(), str::to_owned);
    let mut message = json!({ "messageId": id, "role": role });
    message[parts_name] = json!(parts);
    if way.1 == Version::V03 && matches!(way.0, Binding::JsonRpc | Binding::Socket) {
        message["kind"] = json!("message");
    }
    if let Some(metadata) = metadata {
        message["metadata"] = metadata.clone();
    }
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    let mut configuration = json!({});
    if way.1 == Version::V03 {
        configuration["blocking"] = json!(true);
    }
    if !output_modes.is_empty() {
        configuration["acceptedOutputModes"] = json!(output_modes);
    }
    json!({ "message": message, "configuration": configuration })
}

fn method(version: Version, live: bool) -> &'static str {
    match (version, live) {
        (Version::V1, false) => "SendMessage",
        (Version::V1, true) => "SendStreamingMessage",
        (Version::V03, false) => "message/send",
        (Version::V03, true) => "message/stream",
    }
}

fn request(version: Version, saying: &Saying, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method(version, saying.live), "params": params})
}

/// Result or error of a JSON-RPC response.
fn unpack(mut response: Value) -> Result<Value, Refused> {
    match response.get("error") {
        None => Ok(response["result"].take()),
        Some(error) => {
            let data = error["data"].get(0).unwrap_or(&error["data"]);
            let reason = data["reason"].as_str().unwrap_or_default().to_owned();
            Err((error["code"].as_i64().unwrap_or_default(), reason))
        }
    }
}

/// Endpoint of the agent, with the header that requests extensions.
fn endpoint<'a>(hub: &'a InProcessHub, version: Version, saying: &Saying) -> Result<Endpoint<'a>> {
    let path = match saying.agent {
        "guest" => "/agents/guest",
        "picky" => "/agents/picky",
        "kit" => "/agents/kit",
        other => bail!("no test has an agent `{other}`"),
    };
    let endpoint = Endpoint::of(hub, path);
    Ok(match (version, saying.extensions) {
        (_, None) => endpoint,
        (Version::V1, Some(uris)) => endpoint.with("A2A-Extensions", uris),
        (Version::V03, Some(uris)) => endpoint.with("X-A2A-Extensions", uris),
    })
}

fn told_active(version: Version, response: &reqwest::Response) -> Option<String> {
    let name = if version == Version::V1 { "a2a-extensions" } else { "x-a2a-extensions" };
    response.headers().get(name).and_then(|uris| uris.to_str().ok()).map(str::to_owned)
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get("content-type");
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

async fn over_json_rpc(
    hub: &InProcessHub,
    version: Version,
    saying: &Saying,
    params: &Value,
) -> Result<Answer> {
    let asked = request(version, saying, params);
    let response = endpoint(hub, version, saying)?.ask(Method::POST, "", Some(asked)).await?;
    let active = told_active(version, &response);
    let told = match is_stream(&response) {
        true => events(response).await?,
        false => vec![serde_json::from_str(&response.text().await?)?],
    };
    let told: Result<Vec<_>, _> = told.into_iter().map(unpack).collect();
    Ok(told.map(|told| (told, active)))
}

async fn over_rest(
    hub: &InProcessHub,
    version: Version,
    saying: &Saying,
    params: &Value,
) -> Result<Answer> {
    let prefix = if version == Version::V1 { "/rest" } else { "/rest/v1" };
    let verb = if saying.live { "stream" } else { "send" };
    let below = format!("{prefix}/message:{verb}");
    let endpoint = endpoint(hub, version, saying)?;
    let response = endpoint.ask(Method::POST, &below, Some(params.clone())).await?;
    let (status, active) = (response.status().as_u16(), told_active(version, &response));
    if is_stream(&response) {
        return Ok(Ok((events(response).await?, active)));
    }
    let body: Value = serde_json::from_str(&response.text().await?)?;
    if status == 200 {
        return Ok(Ok((vec![body], active)));
    }
    let reason = body["error"]["details"][0]["reason"].as_str().unwrap_or_default();
    Ok(Err((status.into(), reason.to_owned())))
}

async fn over_grpc(
    hub: &InProcessHub,
    version: Version,
    saying: &Saying,
    params: Value,
) -> Result<Answer> {
    let client = match version {
        Version::V1 => GrpcClient::v1(hub)?,
        Version::V03 => GrpcClient::v03(hub)?,
    };
    let name = if version == Version::V1 { "a2a-extensions" } else { "x-a2a-extensions" };
    let client =
        saying.extensions.into_iter().try_fold(client, |client, uris| client.with(name, uris))?;
    let answer = if saying.live {
        client.stream("SendStreamingMessage", params).await.map(|told| (told, None))
    } else {
        client.call("SendMessage", params).await.map(|(answer, head)| {
            let active = head.get(name).and_then(|uris| uris.to_str().ok());
            (vec![answer], active.map(str::to_owned))
        })
    };
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(RpcError::Refused { code, data, .. }) => {
            Ok(Err((code, data[0]["reason"].as_str().unwrap_or_default().to_owned())))
        }
        Err(lost @ RpcError::Lost(_)) => Err(lost.into()),
    }
}

async fn over_socket(
    hub: &InProcessHub,
    version: Version,
    saying: &Saying,
    params: &Value,
) -> Result<Answer> {
    let lines = lines(hub, &request(version, saying, params)).await?;
    let active = lines.first().map(|line| &line["a2a-service-parameters"]["A2A-Extensions"]);
    let active = active.and_then(Value::as_str).map(str::to_owned);
    let told: Result<Vec<_>, _> = lines.into_iter().map(unpack).collect();
    Ok(told.map(|told| (told, active)))
}

/// Sends a request over the socket and returns the lines of the response, without the end of the
/// stream.
pub(super) async fn lines(hub: &InProcessHub, request: &Value) -> Result<Vec<Value>> {
    let live = request["method"].as_str().is_some_and(|method| {
        ["SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"]
            .contains(&method)
    });
    let told = async {
        let mut stream = UnixStream::connect(hub.socket()).await?;
        stream.write_all(format!("{request}\n").as_bytes()).await?;
        let mut lines = BufReader::new(stream).lines();
        let mut told = Vec::new();
        loop {
            let line = lines.next_line().await?.context("it hung up")?;
            let line: Value = serde_json::from_str(&line)?;
            assert_eq!(line["id"], request["id"]);
            if line["result"]["kind"] == "stream-end" {
                return Ok(told);
            }
            let last = !live || line.get("error").is_some();
            told.push(line);
            if last {
                return Ok(told);
            }
        }
    };
    timeout(WITHIN, told).await?
}
