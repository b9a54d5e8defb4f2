//! The message of `send`: its parts, its metadata and the directory in which the agent works.

use super::options::Send;
use crate::{client::files, ui::failure::CommandError};
use a2a_hub_protocol::{
    hub_metadata::{ADDITIONAL_DIRECTORIES, WORKTREE},
    id::MessageId,
    member,
    message::Message,
    question::QUESTION,
    v03::params::OfferedMessage,
};
use anyhow::{Context as _, anyhow, bail};
use serde_json::{Map, Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Maximum size, in bytes, of a message: the hub's limit of a request, minus the envelope.
pub(super) const MAX_MESSAGE: usize = 7 << 20;

/// Prefix of a skill in the agent argument; no agent's name contains a colon.
const BY_SKILL: &str = "skill:";

/// Metadata members that only the local hub understands.
const OF_THIS_HUB: [&str; 3] = ["targetAgent", "workingDirectory", WORKTREE];

/// Builds the message to a remote agent, without local paths.
pub(crate) fn message(send: &Send) -> anyhow::Result<Message> {
    if !send.inheriting.metadata().is_empty() {
        bail!(CommandError::usage(format!(
            "send to `{}`: memory cannot be passed to a remote agent; leave out the options that \
             do so",
            send.agent
        )));
    }
    if send.worktree.is_some() {
        bail!(CommandError::usage(format!(
            "send to `{}`: a remote agent works in no worktree of this machine; leave `--worktree` \
             out",
            send.agent
        )));
    }
    let offered: OfferedMessage =
        serde_json::from_value(member::take(&mut params(send)?, "message"))?;
    let mut message = offered.accept("message")?;
    if let Some(facts) = &mut message.metadata {
        facts.retain(|name, _| !OF_THIS_HUB.contains(&name.as_str()));
    }
    message.metadata.take_if(|facts| facts.is_empty());
    Ok(message)
}

/// Returns the directory in which the agent works.
pub(crate) fn directory(send: &Send) -> anyhow::Result<String> {
    let found = match &send.cwd {
        Some(dir) => return real(dir, "--cwd"),
        None => std::env::current_dir().context("find the current directory")?,
    };
    utf8(found, "--cwd")
}

/// Directory that the message names. A remote hub knows only its own directories, so it gets the
/// one that the user typed, or none.
pub(crate) fn named_directory(send: &Send) -> anyhow::Result<Option<String>> {
    if send.is_remote {
        return send.cwd.clone().map(|dir| utf8(dir, "--cwd")).transpose();
    }
    if send.task.is_some() && send.cwd.is_none() {
        return Ok(None);
    }
    directory(send).map(Some)
}

/// Path of a directory that an option names, with links resolved.
fn real(dir: &Path, option: &str) -> anyhow::Result<String> {
    let found = fs::canonicalize(dir).with_context(|| format!("work in {}", dir.display()))?;
    utf8(found, option)
}

fn utf8(dir: PathBuf, option: &str) -> anyhow::Result<String> {
    dir.into_os_string().into_string().map_err(|dir| {
        let dir = dir.display();
        anyhow!(
            "work in {dir}: its path is not UTF-8, which JSON requires; name another directory \
             with `{option}`"
        )
    })
}

/// Parameters of the request that sends the message.
pub(super) fn params(send: &Send) -> anyhow::Result<Value> {
    let mut free_bytes = MAX_MESSAGE;
    let Some(remaining) = free_bytes.checked_sub(send.message.len()) else {
        bail!(
            "send the message: it is longer than {} MiB; put it into a file in a workspace",
            free_bytes >> 20
        );
    };
    free_bytes = remaining;
    let mut parts = Vec::new();
    if !send.message.is_empty() {
        parts.push(json!({ "kind": "text", "text": send.message }));
    }
    let input = (!send.input.is_empty()).then(|| send.input.iter().cloned().collect());
    if let Some(data) = send.data.clone().or(input.map(Value::Object)) {
        parts.push(json!({ "kind": "data", "data": data }));
    }
    for file in &send.files {
        parts.push(files::part(file, &mut free_bytes)?);
    }
    let (whom, name) = match send.agent.strip_prefix(BY_SKILL) {
        Some(skill) => ("targetSkill", skill),
        None => ("targetAgent", send.agent.as_str()),
    };
    let mut facts = Map::new();
    // An answer from another directory must not move the task there.
    if let Some(directory) = named_directory(send)? {
        facts.insert("workingDirectory".to_owned(), json!(directory));
    }
    if !send.additional.is_empty() {
        let named: Vec<_> =
            send.additional.iter().map(|dir| real(dir, "--add-dir")).collect::<Result<_, _>>()?;
        facts.insert(ADDITIONAL_DIRECTORIES.to_owned(), json!(named));
    }
    if let Some(base) = send.worktree.as_ref().filter(|_| send.task.is_none()) {
        facts.insert(WORKTREE.to_owned(), json!({ "base": base }));
    }
    facts.insert(whom.to_owned(), json!(name));
    facts.extend(send.chosen.metadata());
    facts.extend(send.inheriting.metadata());
    if let Some(question) = &send.question {
        facts.insert(QUESTION.to_owned(), json!(question));
    }
    let mut message = json!({
        "kind": "message",
        "messageId": MessageId::fresh(),
        "role": "user",
        "parts": parts,
        "metadata": facts,
    });
    for (member, value) in [("contextId", &send.context), ("taskId", &send.task)] {
        if let Some(value) = value {
            member::set(&mut message, member, value.as_str());
        }
    }
    let params = json!({ "message": message, "configuration": { "timeoutMs": send.timeout } });
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_directories_are_resolved() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        let send = |additional: &[PathBuf]| Send {
            cwd: Some(real.clone()),
            additional: additional.to_vec(),
            ..Send::to("echo".to_owned(), "hi".to_owned())
        };
        let facts = |send: &Send| params(send).map(|sent| sent["message"]["metadata"].clone());
        let named = facts(&send(&[real.join("link"), real.clone()])).unwrap();
        assert_eq!(named[ADDITIONAL_DIRECTORIES], json!([real, real]));
        assert_eq!(facts(&send(&[])).unwrap().get(ADDITIONAL_DIRECTORIES), None);
        let why = facts(&send(&[real.join("missing")])).unwrap_err();
        assert!(format!("{why:#}").contains("work in"), "{why:#}");
    }
}
