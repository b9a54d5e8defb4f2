//! Delivery of a message: starts the program of a notifier, or sends a request to its server.

use crate::webhooks::{ReceiverError, SendError, Sender, origin, payload::Payload, secret};
use a2a_hub_config::{NotifierPlan, NotifyTarget, SecretStore, find_program, full_environment};
use a2a_hub_core::{
    notify::message::NotifyMessage,
    text::{
        plain_text::line,
        redact::{Secrets, is_secret},
    },
};
use a2a_hub_process::{Launch, Output, ProgramExit, Supervisor, WorkingDirectory, run_blocking};
use a2a_hub_protocol::trace::TraceContext;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;

/// Time limit of a delivery, after which a program's whole process tree is ended.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Part of a program's standard error that is read for its error, in bytes.
const MAX_STDERR: usize = 4_000;

/// Longest error, in characters.
const MAX_ERROR: usize = 300;

/// Longest body of a message to ntfy, in bytes: a server makes an attachment of a longer one.
const MAX_NTFY_BODY: usize = 4_000;

/// Prefix of the variables that a command of this program reads as settings.
const OUR_SETTINGS: &str = "A2A_HUB_";

/// Means by which messages are delivered.
pub struct NotifyChannels {
    /// Sends requests, where the operator's rules allow.
    pub sender: Arc<Sender>,
    /// Starts programs, and ends them with the hub.
    pub supervisor: Supervisor,
    /// Access tokens, and the secrets that messages must not have.
    pub secrets: SecretStore,
    /// Address of the hub's page, which ntfy opens on a click.
    pub page: Option<String>,
}

/// Failure of a delivery.
pub(super) struct DeliveryError {
    /// Reason, in one line.
    pub(super) why: String,
    /// Pause that the server requests.
    pub(super) retry_after: Option<Duration>,
    /// True if another attempt is useless.
    pub(super) is_final: bool,
}

impl DeliveryError {
    fn because(why: impl AsRef<str>) -> Self {
        Self { why: line(why.as_ref(), MAX_ERROR), retry_after: None, is_final: false }
    }
}

impl From<SendError> for DeliveryError {
    fn from(why: SendError) -> Self {
        let (retry_after, is_final) = (why.retry_after(), why.is_final());
        let reason = if let SendError::Receiver(why) = &why {
            receiver_reason(why)
        } else {
            why.to_string()
        };
        Self { retry_after, is_final, ..Self::because(reason) }
    }
}

impl NotifyChannels {
    /// Delivers a message. Returns once the program has ended with success, or the server has
    /// confirmed it; within [`DELIVERY_TIMEOUT`] in any case.
    pub(super) async fn deliver(
        &self,
        plan: &NotifierPlan,
        message: &NotifyMessage,
    ) -> Result<(), DeliveryError> {
        match &plan.target {
            NotifyTarget::Command { program, args } => {
                let run = Box::pin(self.run(program, args, message));
                timeout(DELIVERY_TIMEOUT, run).await.unwrap_or_else(|_| {
                    let why = format!(
                        "`{program}` did not end within {} s, and was killed",
                        DELIVERY_TIMEOUT.as_secs()
                    );
                    Err(DeliveryError::because(why))
                })
            }
            NotifyTarget::Server { url, token, is_ntfy } => {
                let post = Box::pin(self.post(url, token.as_deref(), *is_ntfy, message));
                timeout(DELIVERY_TIMEOUT, post).await.unwrap_or_else(|_| {
                    let why = format!("not delivered within {} s", DELIVERY_TIMEOUT.as_secs());
                    Err(DeliveryError::because(why))
                })
            }
        }
    }

    /// Sends a message to a server.
    async fn post(
        &self,
        url: &str,
        token: Option<&str>,
        is_ntfy: bool,
        message: &NotifyMessage,
    ) -> Result<(), DeliveryError> {
        let (mut headers, media_type, body) = match is_ntfy {
            true => (self.ntfy_headers(message), "text/plain; charset=utf-8", ntfy_body(message)),
            false => (HeaderMap::new(), "application/json", message.to_json().to_string()),
        };
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, self.authorization(token).await?);
        }
        let payload =
            Payload { id: message.id.clone(), seq: 1, media_type, body: Bytes::from(body) };
        Ok(self.sender.post(url, headers, &payload, &TraceContext::default()).await?)
    }

    /// Obstacle that is known without an attempt; none if an attempt may succeed.
    pub(super) fn obstacle(&self, plan: &NotifierPlan) -> Option<String> {
        match &plan.target {
            NotifyTarget::Command { program, .. } => resolve(program).err(),
            NotifyTarget::Server { url, .. } => {
                self.sender.check_url(url).err().map(|why| line(&receiver_reason(&why), MAX_ERROR))
            }
        }
    }

    /// Secrets that no message may have: those of the hub's environment, and the stored ones.
    pub(super) async fn secrets(&self) -> Secrets {
        let store = self.secrets.clone();
        let stored = run_blocking(move || store.stored()).await.unwrap_or_default();
        let environment = full_environment().into_iter().filter(|(name, _)| is_secret(name));
        Secrets::new(environment.chain(stored))
    }

    async fn authorization(&self, name: &str) -> Result<HeaderValue, DeliveryError> {
        let (store, wanted) = (self.secrets.clone(), name.to_owned());
        let found = run_blocking(move || store.all([wanted.as_str()])).await;
        let found = found.map_err(|why| DeliveryError::because(why.to_string()))?;
        let found = found.map_err(|(name, why)| {
            DeliveryError::because(format!("use the secret `{name}`: {why}"))
        })?;
        let token = found.get(name).cloned().unwrap_or_default();
        secret(&format!("Bearer {token}")).map_err(|why| DeliveryError::because(why.to_string()))
    }

    /// Headers of ntfy (its documentation, "List of all parameters").
    fn ntfy_headers(&self, message: &NotifyMessage) -> HeaderMap {
        let click = self.page.as_ref().map(|page| ("click", page.clone()));
        let fields = [
            ("title", header_text(&message.title())),
            ("priority", message.priority().to_string()),
            ("tags", message.tags().join(",")),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in fields.into_iter().chain(click) {
            // Anything that no header can have is left out.
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    /// Runs a program with the message on its standard input.
    async fn run(
        &self,
        program: &str,
        args: &[String],
        message: &NotifyMessage,
    ) -> Result<(), DeliveryError> {
        let failed = |why: &dyn std::fmt::Display| DeliveryError::because(why.to_string());
        let path = resolve(program).map_err(DeliveryError::because)?;
        let cwd = WorkingDirectory::open(Path::new("/")).map_err(|why| failed(&why))?;
        let passed = full_environment().into_iter();
        let mut env: Vec<_> = passed.filter(|(name, _)| !name.starts_with(OUR_SETTINGS)).collect();
        env.push(("NOTIFY_TITLE".to_owned(), message.title()));
        env.push(("NOTIFY_TEXT".to_owned(), message.body()));
        let (agent, owner) = ("a2a-hub".to_owned(), "notifiers".to_owned());
        let args = args.to_vec();
        let launch = Launch { agent, owner, program: path, args, env, cwd, confinement: None };
        let mut child = self.supervisor.spawn(launch).await.map_err(|why| failed(&why))?;
        let input = format!("{}\n", message.to_json());
        // A program that does not read its input closes it.
        let _ = child.write_stdin(input.as_bytes()).await;
        child.close_stdin();
        let mut stderr = Vec::new();
        let exit = loop {
            match child.next().await {
                Output::Stderr(bytes) => {
                    stderr.extend(bytes);
                    let surplus = stderr.len().saturating_sub(MAX_STDERR);
                    stderr.drain(..surplus);
                }
                Output::Stdout(_) | Output::MemoryExceeded(_) => {}
                Output::Exited(exit) => break exit,
            }
        };
        let reported = String::from_utf8_lossy(&stderr);
        let reported = self.secrets().await.hide(reported.trim()).into_owned();
        let reported = if reported.is_empty() { reported } else { format!(": {reported}") };
        match exit {
            ProgramExit::Code(0) => Ok(()),
            ProgramExit::Code(code) => {
                Err(failed(&format!("`{program}` exited with {code}{reported}")))
            }
            ProgramExit::Signal(signal) => {
                Err(failed(&format!("`{program}` was ended by signal {signal}{reported}")))
            }
        }
    }
}

/// Program, or scheme, host and port of the server: the rest of a URL may be secret.
pub(super) fn target_text(target: &NotifyTarget) -> String {
    match target {
        NotifyTarget::Command { program, .. } => line(program, MAX_ERROR),
        NotifyTarget::Server { url, .. } => origin(url),
    }
}

/// Reason why a URL cannot receive messages. It never contains the URL, which may be secret.
fn receiver_reason(why: &ReceiverError) -> String {
    if let ReceiverError::NotUrl { why, .. } = why {
        return format!("its URL is invalid: {why}; correct it in the configuration");
    }
    why.to_string()
}

/// Path of a program. The error names the way out.
fn resolve(program: &str) -> Result<PathBuf, String> {
    if program.starts_with('/') {
        return Ok(PathBuf::from(program));
    }
    find_program(program).ok_or_else(|| {
        format!(
            "no program `{program}` is on the hub's PATH; install it, or write its absolute path"
        )
    })
}

/// Body of a message to ntfy, without a part of a character.
fn ntfy_body(message: &NotifyMessage) -> String {
    let mut body = message.body();
    if body.len() > MAX_NTFY_BODY {
        let end = body.floor_char_boundary(MAX_NTFY_BODY - '…'.len_utf8());
        body.truncate(end);
        body.push('…');
    }
    body
}

/// Text of a header: as it is in ASCII, or else as an encoded word (RFC 2047, section 2), which
/// ntfy reads from version 2.4 on.
fn header_text(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return text.to_owned();
    }
    format!("=?UTF-8?B?{}?=", STANDARD.encode(text))
}
