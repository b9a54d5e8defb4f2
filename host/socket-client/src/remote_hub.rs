//! Connection to a remote hub, over HTTP with an API key. Requests of the socket's protocol (one
//! JSON-RPC message a line) become HTTP requests, and each event of a response becomes a line.

use crate::failure::CONNECTION_LOST;
#[cfg(not(feature = "hub"))]
use crate::failure::{CommandError, HUB_NOT_JOINED};
use a2a_hub_client::{
    outbound::{Incoming, Outbound, OutboundError},
    sse::EventDecoder,
};
use a2a_hub_config::{self as config, ClientTlsFiles, JoinedHub, JoinedHubs};
use a2a_hub_core::text::plain_text::line;
use a2a_hub_protocol::hub::methods::{HubMethod, METHODS};
use a2a_hub_tls::read_client_tls;
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use http::{
    Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Full, Limited};
use serde_json::{Value, json};
use std::{io, net::IpAddr, path::Path, sync::Arc, time::Duration};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf, duplex, split,
    },
    sync::Mutex,
    task::JoinSet,
};
use url::Url;

/// Time until the head of a response. A task may take long before its first event.
const HEAD_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Time until the response to an invitation.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest response that is no stream of events, in bytes.
const MAX_RESPONSE: usize = 16 << 20;

/// Most characters of a foreign server's text in an error.
const MAX_QUOTED: usize = 300;

/// Size of the pipes between a client and its relay, in bytes.
const PIPE: usize = 1 << 16;

/// A remote hub, by the name or the URL that the user typed.
///
/// # Errors
///
/// If no joined hub has it.
pub fn find(data_dir: &Path, named: &str) -> anyhow::Result<JoinedHub> {
    let hubs = JoinedHubs::new(data_dir).read()?;
    let url = named.trim_end_matches('/');
    let is_it = |hub: &&JoinedHub| hub.name == named || hub.url == url;
    if let Some(hub) = hubs.iter().rev().find(is_it) {
        return Ok(hub.clone());
    }
    let names: Vec<_> = hubs.iter().map(|hub| hub.name.as_str()).collect();
    let known = match names.is_empty() {
        true => "you joined none yet".to_owned(),
        false => format!("you joined {}", names.join(", ")),
    };
    bail!("connect to the hub `{named}`: {known}; `a2a-hub join` joins one with an invitation")
}

/// The only hub that this user joined.
///
/// # Errors
///
/// If the user joined none, or several.
#[cfg(not(feature = "hub"))]
pub fn find_only(data_dir: &Path) -> anyhow::Result<JoinedHub> {
    let mut hubs = JoinedHubs::new(data_dir).read()?;
    let why = match (hubs.pop(), &*hubs) {
        (Some(only), []) => return Ok(only),
        (None, _) => {
            "you joined none yet; `a2a-hub join URL` joins one with an invitation".to_owned()
        }
        (Some(last), others) => {
            let names: Vec<_> = others.iter().chain([&last]).map(|hub| &*hub.name).collect();
            format!("you joined {}; name one of them with `--hub`", names.join(", "))
        }
    };
    let why = format!("connect to a hub: {why}");
    Err(CommandError::new(HUB_NOT_JOINED, why).mended_by("a2a-hub join URL").into())
}

/// URL of a hub, without a trailing slash. A key must not pass a network unencrypted.
///
/// # Errors
///
/// If it is no URL of a hub.
pub fn checked_url(url: &str) -> anyhow::Result<String> {
    let parsed = Url::parse(url).with_context(|| format!("read the URL `{}`", line(url, 80)))?;
    let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match parsed.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        "http" => bail!(
            "join {url}: over plain HTTP, everybody on the way can read your key; use an https \
             URL, or forward a port (`ssh -L 9000:127.0.0.1:8080 HOST`) and join \
             http://127.0.0.1:9000"
        ),
        other => bail!("join {url}: the scheme must be https, not {other}"),
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        bail!("join {url}: leave out the name and password in the URL");
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// HTTP client that uses these files. Blocks on disk I/O.
///
/// # Errors
///
/// If a file is missing or unusable.
fn outbound(files: &ClientTlsFiles) -> anyhow::Result<Outbound> {
    if files.is_empty() {
        return Ok(Outbound::unguarded());
    }
    Ok(Outbound::unguarded().with_tls(read_client_tls(files)?))
}

/// Exchanges an invitation for a key. `label` is the name of this machine.
///
/// # Errors
///
/// If the hub cannot be reached, or refuses the invitation, or a file for TLS is unusable.
pub async fn join(
    url: &str,
    invitation: &str,
    label: &str,
    files: &ClientTlsFiles,
) -> anyhow::Result<Value> {
    let body = json!({ "invitation": invitation, "label": label }).to_string();
    let request = Request::post(format!("{url}/join")).header(CONTENT_TYPE, "application/json");
    let request = request.body(Full::new(Bytes::from(body)))?;
    let response = outbound(files)?.ask(request, JOIN_TIMEOUT).await;
    let response = response.with_context(|| format!("reach the hub at {url}"))?;
    let status = response.status();
    let (answer, why) = read_plain(response, url).await?;
    if status.is_success() && answer["secret"].is_string() {
        return Ok(answer);
    }
    bail!("join {url}: {why} (HTTP {})", status.as_u16())
}

/// Reads a response that is no stream of events: its JSON, if it is that, and the text of an error,
/// as one line.
async fn read_plain(response: Response<Incoming>, url: &str) -> anyhow::Result<(Value, String)> {
    let text = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
    let text = text.map_err(|why| anyhow!("read the answer of {url}: {why}"))?.to_bytes();
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    let why = reason(&answer).unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned());
    Ok((answer, line(&why, MAX_QUOTED)))
}

/// Name of this machine.
pub fn machine_name() -> String {
    line(&config::machine_name(), 60)
}

/// Text of an error in any of the forms in which a hub writes it.
fn reason(answer: &Value) -> Option<String> {
    let text = answer["error"]["message"].as_str().or_else(|| answer["error"].as_str());
    text.or_else(|| answer["message"].as_str()).map(str::to_owned)
}

/// Connects to a remote hub. The stream speaks the protocol of the unix socket as long as the
/// relay runs.
///
/// # Errors
///
/// If a file for TLS is unusable.
pub fn connect(hub: JoinedHub) -> anyhow::Result<(DuplexStream, JoinSet<()>)> {
    let outbound = outbound(&hub.tls).with_context(|| format!("connect to {}", hub.url))?;
    let (near, far) = duplex(PIPE);
    let mut running = JoinSet::new();
    running.spawn(relay(far, hub, outbound));
    Ok((near, running))
}

/// Relays requests until the client closes its end, which ends all of them.
async fn relay(far: DuplexStream, hub: JoinedHub, outbound: Outbound) {
    let (read, write) = split(far);
    let (mut lines, write) = (BufReader::new(read).lines(), Arc::new(Mutex::new(write)));
    let hub = Arc::new(hub);
    let mut requests = JoinSet::new();
    while let Ok(Some(request)) = lines.next_line().await {
        let (hub, outbound, write) = (Arc::clone(&hub), outbound.clone(), Arc::clone(&write));
        requests.spawn(async move {
            let parsed: Value = serde_json::from_str(&request).unwrap_or_default();
            let (id, is_method) = (&parsed["id"], |it: &&HubMethod| parsed["method"] == it.name);
            let streams = METHODS.iter().find(is_method).is_some_and(|method| method.streams);
            let last = match ask(&hub, &outbound, request, &write).await {
                Ok(is_stream) if streams && is_stream => {
                    Some(json!({ "jsonrpc": "2.0", "id": id, "result": { "kind": "stream-end" } }))
                }
                Ok(_) => None,
                Err(why) => {
                    let data = json!({ "reason": reason_of(&why) });
                    let error =
                        json!({ "code": -32_000, "message": format!("{why:#}"), "data": data });
                    Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
                }
            };
            if let Some(last) = last {
                // The client may have left.
                let _ = write_line(&write, last.to_string().as_bytes()).await;
            }
        });
        while requests.try_join_next().is_some() {}
    }
}

/// Body of a response that broke off.
#[derive(Debug, thiserror::Error)]
#[error("the connection to {0} broke off")]
struct BrokenOff(String);

/// Stable reason of an error for scripts, and for the command that reconnects.
fn reason_of(why: &anyhow::Error) -> &'static str {
    if why.is::<BrokenOff>() { CONNECTION_LOST } else { "REMOTE_HUB" }
}

/// Sends one request, and writes each response to it as a line. Returns true if the response was a
/// stream of events that is complete.
async fn ask(
    hub: &JoinedHub,
    outbound: &Outbound,
    request: String,
    write: &Mutex<WriteHalf<DuplexStream>>,
) -> anyhow::Result<bool> {
    let url = &hub.url;
    let request = Request::post(format!("{url}/stream"))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream")
        .header(AUTHORIZATION, format!("Bearer {}", hub.key))
        .body(Full::new(Bytes::from(request)))?;
    let response = match outbound.ask(request, HEAD_TIMEOUT).await {
        Ok(response) => response,
        Err(why @ OutboundError::Late(_)) => bail!("the hub at {url} does not answer: {why}"),
        Err(why) => bail!("the hub at {url} cannot be reached: {why}"),
    };
    let (status, media) = (response.status(), media_type(&response));
    if !media.starts_with("text/event-stream") {
        let (answer, why) = read_plain(response, url).await?;
        // An error before the first event is a plain response.
        if status.is_success() && answer["jsonrpc"] == "2.0" {
            write_line(write, answer.to_string().as_bytes()).await?;
            return Ok(false);
        }
        match status {
            StatusCode::UNAUTHORIZED => bail!("the hub at {url} refuses your key: {why}"),
            _ => bail!("{url} answers with HTTP {}: {why}", status.as_u16()),
        }
    }
    let mut body = response.into_body();
    let (mut decoder, mut has_answered) = (EventDecoder::default(), false);
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BrokenOff(url.clone()))?.into_data() else { continue };
        for event in decoder.decode(&piece)? {
            has_answered = true;
            // An event may be written over several lines.
            let one_line: Vec<u8> = event.data.iter().copied().filter(|it| *it != b'\n').collect();
            write_line(write, &one_line).await?;
        }
    }
    if !has_answered {
        bail!(BrokenOff(url.clone()));
    }
    Ok(true)
}

fn media_type<B>(response: &Response<B>) -> String {
    let media = response.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
    media.unwrap_or_default().to_ascii_lowercase()
}

async fn write_line(write: &Mutex<WriteHalf<DuplexStream>>, text: &[u8]) -> io::Result<()> {
    let mut write = write.lock().await;
    write.write_all(text).await?;
    write.write_all(b"\n").await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_pass_no_network_unencrypted() {
        for (url, checked) in [
            ("https://hub.example", Some("https://hub.example")),
            ("https://hub.example:8443/hub/", Some("https://hub.example:8443/hub")),
            ("http://127.0.0.1:9000", Some("http://127.0.0.1:9000")),
            ("http://[::1]:9000/", Some("http://[::1]:9000")),
            ("http://localhost:9000", Some("http://localhost:9000")),
            ("http://hub.example", None),
            ("http://127.0.0.1.evil.example", None),
            ("http://localhost.evil.example", None),
            ("http://192.168.1.7:8080", None),
            ("https://ada:secret@hub.example", None),
            ("ftp://hub.example", None),
            ("hub.example", None),
            ("", None),
        ] {
            assert_eq!(checked_url(url).ok().as_deref(), checked, "{url}");
        }
    }

    #[cfg(all(unix, not(feature = "without-unix")))] // temporary files are outside of the profile
    #[test]
    fn hub_is_found_by_name_or_url() {
        let dir = tempfile::tempdir().unwrap();
        let none = find(dir.path(), "team").unwrap_err().to_string();
        assert!(none.contains("you joined none yet"), "{none}");
        let hub = JoinedHub {
            name: "team".to_owned(),
            url: "https://hub.example".to_owned(),
            person: "ada".to_owned(),
            key: "a2ah_1".to_owned(),
            tls: ClientTlsFiles::default(),
        };
        JoinedHubs::new(dir.path()).add(hub.clone()).unwrap();
        assert_eq!(find(dir.path(), "team").unwrap(), hub);
        assert_eq!(find(dir.path(), "https://hub.example/").unwrap(), hub);
        let other = find(dir.path(), "tea").unwrap_err().to_string();
        assert!(other.contains("you joined team") && !other.contains("a2ah_"), "{other}");
    }

    #[cfg(all(unix, not(feature = "without-unix"), not(feature = "hub")))]
    #[test]
    fn only_joined_hub_needs_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let none = find_only(dir.path()).unwrap_err().to_string();
        assert!(none.contains("a2a-hub join URL"), "{none}");
        let hub = |name: &str| JoinedHub {
            name: name.to_owned(),
            url: format!("https://{name}.example"),
            person: "ada".to_owned(),
            key: "a2ah_1".to_owned(),
            tls: ClientTlsFiles::default(),
        };
        JoinedHubs::new(dir.path()).add(hub("team")).unwrap();
        assert_eq!(find_only(dir.path()).unwrap(), hub("team"));
        JoinedHubs::new(dir.path()).add(hub("other")).unwrap();
        let two = find_only(dir.path()).unwrap_err().to_string();
        assert!(two.contains("you joined team, other; name one of them with `--hub`"), "{two}");
    }

    #[test]
    fn refusals_of_all_forms_have_reason() {
        for text in [
            r#"{"error":{"code":-32006,"message":"no"}}"#,
            r#"{"error":"no"}"#,
            r#"{"message":"no"}"#,
        ] {
            let answer = serde_json::from_str(text).unwrap();
            assert_eq!(reason(&answer).as_deref(), Some("no"), "{text}");
        }
        assert_eq!(reason(&json!([])), None);
    }
}
