//! Command with which a user continues a task's session in the vendor's own program.

use serde_json::Value;
use std::path::PathBuf;

/// Built-in agents, with the vendor's command that continues a session; the session's id follows.
const RESUMES: [(&str, [&str; 2]); 4] = [
    ("claude-code", ["claude", "--resume"]),
    ("codex", ["codex", "resume"]),
    ("gemini", ["gemini", "--resume"]),
    ("vibe", ["vibe", "--resume"]),
];

/// Command that continues a session, and its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorCommand {
    /// Program, its option or command, and the session. None needs quotes in a shell.
    pub words: [String; 3],
    /// Working directory of the task.
    pub dir: Option<PathBuf>,
}

/// Reason why a task cannot be continued in a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoVendorSession {
    /// The agent drives no program that has sessions.
    #[error("its agent is `{agent}`, and only these drive a program with sessions: {known}")]
    OtherAgent {
        /// The task's agent.
        agent: String,
        /// Agents with such a program.
        known: String,
    },
    /// The agent has reported no session.
    #[error("`{agent}` has reported no session of `{program}`; continue it through the hub")]
    Unreported {
        /// The task's agent.
        agent: String,
        /// Vendor's program.
        program: &'static str,
    },
}

impl VendorCommand {
    /// Determines the command for a task of `agent`, as JSON of A2A.
    ///
    /// # Errors
    /// If the agent is another one, or has reported no session.
    pub fn for_task(task: &Value, agent: &str) -> Result<Self, NoVendorSession> {
        let known = RESUMES.iter().find(|(name, _)| *name == agent);
        let Some((_, [program, option])) = known else {
            let known = RESUMES.map(|(name, _)| name).join(", ");
            return Err(NoVendorSession::OtherAgent { agent: agent.to_owned(), known });
        };
        let session = task["metadata"]["vendorSession"].as_str().unwrap_or_default();
        // An agent reported it: it must not be an option of the program.
        let is_id = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
        if session.is_empty() || session.starts_with('-') || !session.chars().all(is_id) {
            return Err(NoVendorSession::Unreported { agent: agent.to_owned(), program });
        }
        let messages = task["history"].as_array().into_iter().flatten().rev();
        let user_messages = messages.filter(|message| message["role"] == "user");
        let dir = user_messages
            .filter_map(|message| message["metadata"]["workingDirectory"].as_str())
            .next();
        let words = [*program, *option, session].map(str::to_owned);
        Ok(Self { words, dir: dir.map(PathBuf::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn session_is_continued_in_its_directory() {
        let said = |role: &str, dir: &str| json!({ "role": role, "metadata": { "workingDirectory": dir } });
        let history = json!([said("user", "/old"), said("user", "/src"), said("agent", "/else")]);
        let of = |agent: &str, session: &str| {
            let metadata = json!({ "vendorSession": session });
            VendorCommand::for_task(&json!({ "history": history, "metadata": metadata }), agent)
        };
        let claude = of("claude-code", "0a-1").unwrap();
        assert_eq!(claude.words, ["claude", "--resume", "0a-1"]);
        assert_eq!(claude.dir, Some("/src".into()));
        assert_eq!(of("codex", "0a-1").unwrap().words, ["codex", "resume", "0a-1"]);
        assert!(of("echo", "s").unwrap_err().to_string().contains("its agent is `echo`"));
        for session in ["", "--yolo", "a b", "a;b"] {
            let why = of("codex", session).unwrap_err();
            assert!(matches!(why, NoVendorSession::Unreported { .. }), "{why}");
        }
        let nowhere = json!({ "metadata": { "vendorSession": "s" } });
        assert_eq!(VendorCommand::for_task(&nowhere, "vibe").unwrap().dir, None);
    }
}
