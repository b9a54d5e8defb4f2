//! `send`: sends a message to an agent and prints the answer as it arrives; Ctrl-C cancels the
//! task.

pub(super) mod aftermath;
mod conclude;
mod conversation;
mod latest_context;
mod memory_options;
pub(crate) mod message_options;
mod options;
mod request;
mod step;

#[cfg(not(feature = "hub"))]
use super::remote_only::{self as start, joins_late, say_edited};
use super::task::output::{TaskOutput, print_begun};
#[cfg(feature = "hub")]
use super::{
    flow::joined::{joins_late, say_edited},
    start,
};
use crate::{
    Exit, Format, Global, block_on,
    client::{
        hub_client::Client,
        ids::{self, Kind},
        remote::{self, RemoteOptions},
    },
    ui::{
        failure::CommandError,
        interactive::{UserAnswer, ask},
        text::{FAINT, Text},
    },
};
use a2a_hub_protocol::member;
use aftermath::note_uncommitted;
use anyhow::{Context as _, bail};
pub(crate) use conclude::conclude;
use conversation::SendConversation;
use latest_context::latest_context;
use memory_options::Inheriting;
use message_options::MessageOptions;
pub(crate) use options::Send;
use request::{MAX_MESSAGE, params};
pub(crate) use request::{directory, message};
use std::{
    io::{self, Read as _},
    time::Duration,
};
pub(crate) use step::SendStep;

/// Most time in which an agent that is being compiled is waited for, without `--timeout`.
const COMPILE_TIMEOUT: Duration = Duration::from_mins(5);

/// Sends a message to an agent of the hub, and prints its answer.
pub(crate) fn send(global: &Global, mut send: Send) -> anyhow::Result<Exit> {
    if let Some(option) = send.elsewhere.specified() {
        bail!(
            "send to `{}`: `{option}` needs an agent that is named by its URL; for a remote agent \
             of the hub, set `token_env` and `origins` in `[remote.<id>]`",
            send.agent
        );
    }
    block_on(async {
        let mut client = start::client(global, send.start).await?;
        if send.go_on {
            send.context = Some(latest_context(&mut client, &send).await?);
        }
        if let Some(typed) = send.context.as_ref().filter(|_| !send.go_on) {
            let id = ids::resolve_or_new(&mut client, typed).await?;
            if global.format == Format::Pretty && !ids::is_known_context(&mut client, &id).await {
                global.console().note(Text::styled(FAINT, begins(&id)));
            }
            send.context = Some(id);
        }
        if let Some(typed) = &send.task {
            send.task = Some(ids::resolve(&mut client, Kind::Task, typed).await?);
        }
        say_edited(global, &mut client, &send.agent).await?;
        if send.detach {
            return begin(global, &mut client, &send).await;
        }
        if send.worktree.as_deref() == Some("HEAD") && !send.is_remote {
            note_uncommitted(global, &directory(&send)?).await;
        }
        SendConversation::new(global, client, send).await.run().await
    })
}

/// Sends the message and prints the id of its task, which runs on.
async fn begin(global: &Global, client: &mut Client, send: &Send) -> anyhow::Result<Exit> {
    let mut request = params(send)?;
    if let Some(configuration) = request.get_mut("configuration") {
        member::set(configuration, "blocking", false);
    }
    let task = match client.call("message/send", request.clone()).await {
        // Its flow may have been saved a moment ago, or be held back.
        Err(why) if joins_late(global, client, &send.agent, &why).await? => {
            client.call("message/send", request).await?
        }
        task => task?,
    };
    print_begun(global, &task, "")
}

/// Tells the user that no conversation has this id yet: it may be mistyped.
fn begins(context: &str) -> String {
    format!(
        "no conversation is called `{context}` yet, so this message begins it; `a2a-hub conversations` \
         lists the others"
    )
}

impl Send {
    /// Reads the message from standard input if it is given as `-`, or from a terminal if it is
    /// missing; `None` if the user ends the prompt with Ctrl-C.
    pub(crate) fn with_message(mut self, global: &Global) -> anyhow::Result<Option<Self>> {
        let is_missing = self.message.is_empty() && self.files.is_empty() && self.input.is_empty();
        if is_missing && self.agent.contains(char::is_whitespace) {
            return self.for_default_agent(global).map(Some);
        }
        if is_missing && global.console().is_attended() && global.format == Format::Pretty {
            let hint = format!("your message to {}", self.agent);
            match block_on(ask(global.console(), &hint))? {
                UserAnswer::Text(typed) => self.message = typed,
                UserAnswer::Nothing => {}
                UserAnswer::Interrupted => {
                    global.console().note("\nnothing was sent");
                    return Ok(None);
                }
            }
        }
        if self.message == "-" {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().take(MAX_MESSAGE as u64 + 1).read_to_end(&mut bytes);
            read.context("read the message from standard input")?;
            self.message = utf8_message(bytes)?;
        }
        if self.message.trim().is_empty() && self.files.is_empty() && self.input.is_empty() {
            let why = "the message is empty; give a text, or attach a file with `--file`";
            bail!(CommandError::usage(format!("send to `{}`: {why}", self.agent)));
        }
        Ok(Some(self))
    }

    /// Turns a text that stands in the place of the agent into a message to the default agent.
    fn for_default_agent(self, global: &Global) -> anyhow::Result<Self> {
        let Some(agent) = global.settings(Vec::new())?.config.default_agent else {
            let why = "name the agent before the text, as in `a2a-hub send AGENT \"...\"`, or set `default_agent` in the \
                       configuration";
            return Err(CommandError::usage(format!("send a message: {why}")).into());
        };
        Ok(Self { message: self.agent, agent: agent.to_string(), ..self })
    }

    /// Most time in which an agent that is being compiled is waited for.
    fn compile_timeout(&self) -> Duration {
        self.timeout.map_or(COMPILE_TIMEOUT, Duration::from_millis)
    }

    /// Message without options.
    pub(crate) fn to(agent: String, message: String) -> Self {
        Self {
            agent,
            message,
            input: Vec::new(),
            data: None,
            #[cfg(feature = "hub")]
            decides: None,
            is_remote: false,
            files: Vec::new(),
            cwd: None,
            additional: Vec::new(),
            worktree: None,
            stream: false,
            detach: false,
            save: None,
            timeout: None,
            start: false,
            context: None,
            go_on: false,
            task: None,
            question: None,
            chosen: MessageOptions::default(),
            inheriting: Inheriting::default(),
            elsewhere: RemoteOptions::default(),
        }
    }

    /// Turns the message into an answer to this question of a task.
    pub(crate) fn for_task(self, task: String, question: Option<String>) -> Self {
        Self { task: Some(task), question, ..self }
    }

    /// Returns the option that was given and counts for a message to one agent only.
    #[cfg(feature = "hub")]
    pub(crate) fn option_for_one_agent(&self) -> Option<&'static str> {
        let specified = [
            ("--task", self.task.is_some()),
            ("--context", self.context.is_some()),
            ("--continue", self.go_on),
            ("--file", !self.files.is_empty()),
            ("--input", !self.input.is_empty()),
            ("--worktree", self.worktree.is_some()),
        ];
        let specified = specified.into_iter().find(|(_, is_set)| *is_set).map(|(option, _)| option);
        let is_chosen = || !self.chosen.metadata().is_empty();
        let inherits = || !self.inheriting.metadata().is_empty();
        specified
            .or_else(|| is_chosen().then_some("an option of the model and metadata"))
            .or_else(|| inherits().then_some("an option of the memory"))
    }

    /// Tells the user how to continue a conversation that this command began.
    pub(super) fn note_continuation(&self, shown: &TaskOutput) {
        // Data goes to flows, which begin anew with each message.
        if self.context.is_none() && self.data.is_none() {
            shown.note_continuation(remote::is_url(&self.agent));
        }
    }

    /// Turns the command into the answer to a task's question.
    pub(crate) fn become_answer(&mut self, task: String, answer: String, shown: &TaskOutput) {
        self.message = answer;
        (self.files, self.input, self.data) = (Vec::new(), Vec::new(), None);
        (self.task, self.question) = (Some(task), shown.snapshot.question().map(str::to_owned));
    }
}

/// Text of a message given as bytes, without a byte order mark at its start.
fn utf8_message(bytes: Vec<u8>) -> Result<String, CommandError> {
    let text = String::from_utf8(bytes).map_err(|why| {
        let at = why.utf8_error().valid_up_to();
        CommandError::usage(format!(
            "read the message from standard input: byte {} of it is not UTF-8, which A2A's text is; convert it, such as \
             `iconv -f ISO-8859-1 -t UTF-8 FILE | a2a-hub send …`, or send the bytes as they are with `--file`",
            at + 1
        ))
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}
