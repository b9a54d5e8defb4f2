//! Requests of a component, as its manifest states them.

use crate::{
    grant::{
        argument_patterns::Forms,
        delegate::PeersAsk,
        host_pattern::HostPattern,
        http::HttpAsk,
        loader_variable::{leads_astray, loads_code},
        memory::MemoryAsk,
        tools::ToolsAsk,
        workspace::WorkspaceAsk,
    },
    text::one_line::OneLine,
};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Self-description and requests of a component, as its manifest states them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// Agent id that the component is made for; it joins under no other id.
    pub id: Option<AgentId>,
    /// Version, in its maker's words.
    pub version: Option<OneLine>,
    /// Publisher by its own claim; only a signature proves it.
    pub publisher: Option<OneLine>,
    /// Description for the operator who decides about the grant.
    pub description: Option<OneLine>,
    /// Other names that it asks for; free ones take effect once the operator vouches for it.
    pub aliases: BTreeSet<AgentId>,
    /// Programs that it asks to run, by the name that it calls them.
    pub process: BTreeMap<String, ProgramAsk>,
    /// Memory that it asks to store.
    pub memory: Option<MemoryAsk>,
    /// Files that it asks to write for its programs.
    pub files: Option<FilesAsk>,
    /// Hosts that it asks to send requests to.
    pub http: BTreeMap<HostPattern, HttpAsk>,
    /// Access to the files of the working directory that it asks for.
    pub workspace: Option<WorkspaceAsk>,
    /// Access to other agents that it asks for.
    pub delegate: DelegateAsk,
    /// Tools that it asks to call, by their server.
    pub tools: BTreeMap<String, ToolsAsk>,
    /// Ability of the agent to resume a task that the hub's exit interrupted.
    pub resume: Resume,
    /// True if tasks of a context run one at a time: the program's session allows one writer.
    pub one_per_context: bool,
    /// True if the agent may answer with a direct message in place of a task (A2A 1.0, 3.1.1). The
    /// stream of such an agent waits briefly for that message; any other stream begins with the
    /// task at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub direct_message: bool,
    /// Usage that the agent reports, if its author says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports: Option<Reports>,
    /// Settings that point its programs at a mock model for a trial.
    pub trial: Option<Trial>,
}

/// Usage that an agent reports in the metadata of its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reports {
    /// Tokens only: the vendor names no price.
    Tokens,
    /// Tokens and dollars.
    Dollars,
}

/// Ability to resume a task that the hub's exit interrupted: `false`, `true` or `"replay"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ResumeWord", into = "ResumeWord")]
pub enum Resume {
    /// None: the work ends with the hub.
    #[default]
    Nothing,
    /// Resumes the task on the client's next message.
    Session,
    /// Runs again from the start and receives the recorded answers.
    Replay,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ResumeWord {
    Flag(bool),
    Word(String),
}

impl TryFrom<ResumeWord> for Resume {
    type Error = String;

    fn try_from(word: ResumeWord) -> Result<Self, String> {
        match word {
            ResumeWord::Flag(false) => Ok(Self::Nothing),
            ResumeWord::Flag(true) => Ok(Self::Session),
            ResumeWord::Word(word) if word == "replay" => Ok(Self::Replay),
            ResumeWord::Word(word) => {
                Err(format!("`resume` is true, false or \"replay\", and not {word:?}"))
            }
        }
    }
}

impl From<Resume> for ResumeWord {
    fn from(resume: Resume) -> Self {
        match resume {
            Resume::Nothing => Self::Flag(false),
            Resume::Session => Self::Flag(true),
            Resume::Replay => Self::Word("replay".to_owned()),
        }
    }
}

/// Settings that point a component's programs at the loopback model of `a2a-hub doctor --trial`. In
/// the values, `{model}` is replaced by its URL, such as `http://127.0.0.1:40000`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trial {
    /// Variables of the hub's environment, among those that the component's programs are passed.
    pub env: BTreeMap<String, String>,
    /// Files, by their paths below the home directory.
    pub files: BTreeMap<String, String>,
}

/// Request of a component to run one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramAsk {
    /// Allowed argument patterns.
    pub args: Forms,
    /// Variables of the hub's environment that the program needs, as patterns for
    /// [`passes`](super::passes). The guest never sees their values.
    pub pass: BTreeSet<String>,
    /// Variables that the guest would set itself.
    pub set: BTreeSet<String>,
    /// Paths of the program's own data, such as its login and sessions: relative to the home
    /// directory, with a final `/` for a directory; or `$NAME`, the value of a passed variable. A
    /// confined program of a bundled agent may write there.
    pub keeps: BTreeSet<String>,
    /// Reason why it needs the program.
    pub reason: Option<OneLine>,
}

/// Request of a component to write files for its programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesAsk {
    /// Limit in bytes for all files of one task together.
    pub max_bytes: u64,
    /// Reason why it needs them.
    pub reason: Option<OneLine>,
}

/// Request of a component to use other agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DelegateAsk {
    /// Agents that it asks to list and call.
    pub agents: PeersAsk,
    /// Reason why it needs them.
    pub reason: Option<OneLine>,
}

impl ProgramAsk {
    /// Variables passed if the operator names none.
    pub fn passed_unnamed(&self) -> BTreeSet<String> {
        self.pass.iter().filter(|word| !loads_code(word)).cloned().collect()
    }

    /// Variables that the guest may set if the operator names none.
    pub fn set_unnamed(&self) -> BTreeSet<String> {
        self.set.iter().filter(|name| !leads_astray(name)).cloned().collect()
    }
}
