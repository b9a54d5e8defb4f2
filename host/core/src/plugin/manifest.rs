//! Validation of manifests. Their names become keys of a grant, words of a command line, and lines
//! that an operator reads before deciding, so they must not deceive or be ambiguous.

use crate::{
    grant::{
        Ask,
        tools::{is_every, is_tool_name},
    },
    text::terminal::is_deceptive,
};
use a2a_hub_protocol::id::AgentId;

/// Maximum length of a program's or variable's name, in bytes.
const MAX_NAME: usize = 128;

/// Maximum number of aliases that a component may claim.
const MAX_ALIASES: usize = 8;

/// Error for a manifest that parses but is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidManifest {
    /// The name of a program could be a path, an option or a deception.
    #[error(
        "its manifest asks for a program by a name that is none: use 1 to {MAX_NAME} of a-z, 0-9, `.`, `_` and `-`, \
         beginning with a letter or digit"
    )]
    Program,
    /// An argument pattern contains deceptive characters.
    #[error(
        "its manifest has a form of arguments for `{program}` with a control character or one that turns or hides text; \
         such text belongs on standard input"
    )]
    Arguments {
        /// Program of the arguments.
        program: String,
    },
    /// The name of a variable is invalid.
    #[error(
        "its manifest names a variable for `{program}` that cannot be one: use letters, digits and `_`, in `pass` with `*` at the \
         end for all that begin so"
    )]
    Variable {
        /// Program of the variable.
        program: String,
    },
    /// The name of a tool server, or of a tool, is invalid.
    #[error(
        "its manifest asks for tools by a name that is none: a server is called by 1 to {MAX_NAME} of a-z, 0-9, `.`, `_` and `-`, a tool \
         by letters, digits, `_`, `-`, `.` and `/`; `*` is any"
    )]
    Tool,
    /// It claims too many aliases.
    #[error("its manifest claims more than {MAX_ALIASES} aliases; a few are enough")]
    Aliases,
    /// The file belongs to another plug-in, or was renamed.
    #[error(
        "its manifest says that it is `{id}`, and its file is called `{file}`; rename the file to `{id}.wasm`"
    )]
    Id {
        /// Name in the manifest.
        id: AgentId,
        /// Name of the file.
        file: AgentId,
    },
}

impl Ask {
    /// Validates the manifest.
    pub fn check(&self) -> Result<(), InvalidManifest> {
        if self.aliases.len() > MAX_ALIASES {
            return Err(InvalidManifest::Aliases);
        }
        for (name, ask) in &self.process {
            if !is_program_name(name) {
                return Err(InvalidManifest::Program);
            }
            let program = || name.clone();
            let mut tokens = ask.args.written().iter().flatten();
            if tokens.any(|token| token.chars().any(is_deceptive)) {
                return Err(InvalidManifest::Arguments { program: program() });
            }
            let passed = ask.pass.iter().map(|word| word.strip_suffix('*').unwrap_or(word));
            let set = ask.set.iter().map(String::as_str);
            if !passed.chain(set).all(is_variable_name) {
                return Err(InvalidManifest::Variable { program: program() });
            }
        }
        for (server, ask) in &self.tools {
            let are_tools = || ask.names.iter().all(|tool| is_every(tool) || is_tool_name(tool));
            if !(is_every(server) || is_program_name(server)) || !are_tools() {
                return Err(InvalidManifest::Tool);
            }
        }
        Ok(())
    }

    /// Checks that it may join under this name.
    pub fn is_for(&self, agent: &AgentId) -> Result<(), InvalidManifest> {
        match &self.id {
            Some(id) if id != agent => {
                Err(InvalidManifest::Id { id: id.clone(), file: agent.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// True for a valid name of a program or tool server in a manifest: `^[a-z0-9][a-z0-9._-]*$`.
pub fn is_program_name(name: &str) -> bool {
    let begins = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let goes_on = |b: u8| begins(b) || b"._-".contains(&b);
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().next().is_some_and(begins)
        && name.bytes().all(goes_on)
}

fn is_variable_name(name: &str) -> bool {
    let ours = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::{ProgramAsk, tools::ToolsAsk};

    fn asking(name: &str, program: ProgramAsk) -> Result<(), InvalidManifest> {
        Ask { process: [(name.to_owned(), program)].into(), ..Ask::default() }.check()
    }

    #[test]
    fn program_name_must_be_plain() {
        for name in ["git", "vibe-acp", "python3.12", "7z", "a_b"] {
            assert_eq!(asking(name, ProgramAsk::default()), Ok(()), "{name}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for name in
            ["", "Git", "-rf", ".git", "/bin/sh", "a b", "a\nb", "gi\u{202e}t", "a`b", "é", &long]
        {
            assert_eq!(
                asking(name, ProgramAsk::default()),
                Err(InvalidManifest::Program),
                "{name}"
            );
        }
    }

    #[test]
    fn deceptive_arguments_and_variables_are_refused() {
        let form = |token: &str| ProgramAsk {
            args: vec![vec![token.to_owned()]].try_into().unwrap(),
            ..ProgramAsk::default()
        };
        assert_eq!(asking("git", form("--format=%H %s")), Ok(()));
        let program = || "git".to_owned();
        for token in ["log\n+ nothing", "\u{1b}[2K", "a\u{202e}b"] {
            let refused = Err(InvalidManifest::Arguments { program: program() });
            assert_eq!(asking("git", form(token)), refused, "{token}");
        }
        let passing =
            |word: &str| ProgramAsk { pass: [word.to_owned()].into(), ..Default::default() };
        let setting =
            |name: &str| ProgramAsk { set: [name.to_owned()].into(), ..Default::default() };
        assert_eq!(asking("git", passing("GIT_*")), Ok(()));
        for wrong in [
            passing("*"),
            passing("A B"),
            passing("A*B"),
            setting("A*"),
            setting(""),
            setting("A=B"),
        ] {
            let refused = Err(InvalidManifest::Variable { program: program() });
            assert_eq!(asking("git", wrong.clone()), refused, "{wrong:?}");
        }
    }

    #[test]
    fn servers_and_tools_have_plain_names() {
        let asking = |server: &str, tool: &str| {
            let ask = ToolsAsk { names: [tool.to_owned()].into(), reason: None };
            Ask { tools: [(server.to_owned(), ask)].into(), ..Ask::default() }.check()
        };
        for (server, tool) in [("files", "read_file"), ("*", "*"), ("my-server", "a/b")] {
            assert_eq!(asking(server, tool), Ok(()), "{server} {tool}");
        }
        for (server, tool) in
            [("Files", "x"), ("a b", "x"), ("files", "a b"), ("files", "\u{202e}x")]
        {
            assert_eq!(asking(server, tool), Err(InvalidManifest::Tool), "{server} {tool}");
        }
    }

    #[test]
    fn manifest_id_must_match_file_name() {
        let id = |name| AgentId::parse(name).unwrap();
        let named = Ask { id: Some(id("notes")), ..Ask::default() };
        assert_eq!(named.is_for(&id("notes")), Ok(()));
        assert_eq!(Ask::default().is_for(&id("anything")), Ok(()));
        let refused = named.is_for(&id("codex2")).unwrap_err().to_string();
        assert!(refused.ends_with("rename the file to `notes.wasm`"), "{refused}");
    }
}
