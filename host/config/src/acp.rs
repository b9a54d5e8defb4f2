//! Program of an agent that speaks the Agent Client Protocol: the key `acp` of the agent's section.

use crate::{
    agent::AgentConfig,
    catalogue::{self, CatalogueEntry},
    environment::find_program,
    error::ConfigError,
};
use a2a_hub_core::{plugin::manifest::is_program_name, text::terminal::is_deceptive};
use a2a_hub_protocol::id::AgentId;
use std::path::Path;

/// Name of the key.
pub(crate) const KEY: &str = "acp";

/// Maximum number of arguments: a longer command line belongs into a script.
const MAX_ARGS: usize = 64;

/// Program that an agent drives, from its configuration and the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcpProgram {
    /// Name of the program in the agent's grant.
    pub name: String,
    /// Path of the program, unless its name is looked up on the hub's `PATH`.
    pub path: Option<String>,
    /// Arguments.
    pub args: Vec<String>,
    /// CatalogueEntry of the catalogue for the program, if any.
    pub entry: Option<&'static CatalogueEntry>,
}

impl AgentConfig {
    /// Program of the Agent Client Protocol that the agent `id` drives; none for other agents.
    pub fn acp_program(&self, id: &AgentId) -> Option<AcpProgram> {
        let (program, args) = self.acp.split_first()?;
        let is_path = Path::new(program).is_absolute();
        let file = Path::new(program).file_name().and_then(|name| name.to_str());
        let name = file.filter(|name| is_program_name(name));
        let path = match name {
            Some(_) => is_path.then(|| program.clone()),
            // The grant cannot hold that name, so it calls the program by the agent's.
            None if is_path => Some(program.clone()),
            None => find_program(program).and_then(|path| path.to_str().map(str::to_owned)),
        };
        Some(AcpProgram {
            name: name.map_or_else(|| id.to_string(), str::to_owned),
            path,
            args: args.to_vec(),
            entry: file.and_then(catalogue::of_program),
        })
    }

    /// Checks the command line of its program. The arguments become a grant, in which braces and
    /// brackets stand for other text.
    pub(super) fn check_acp(&self, agent: &AgentId) -> Result<(), ConfigError> {
        let wrong = |why: String| Err(ConfigError::Acp { agent: agent.clone(), why });
        let Some((program, args)) = self.acp.split_first() else { return Ok(()) };
        if program.is_empty() || (program.contains('/') && !Path::new(program).is_absolute()) {
            return wrong(format!(
                "`{program}` is a relative path; name a program on the hub's PATH, or give an absolute path"
            ));
        }
        if args.len() > MAX_ARGS {
            return wrong(format!("it has more than {MAX_ARGS} arguments; put them into a script"));
        }
        let is_pattern = |arg: &&String| {
            arg.is_empty()
                || arg.contains("{}")
                || (arg.starts_with('[') && arg.ends_with(']'))
                || arg.chars().any(is_deceptive)
        };
        match args.iter().find(is_pattern) {
            Some(arg) => wrong(format!(
                "the argument `{}` is empty, has `{{}}`, stands in brackets, or has a control character; put it into a script, \
                 and name the script",
                arg.escape_debug()
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn read(acp: &str) -> Result<AgentConfig, String> {
        let config: Config = toml::from_str(&format!("agents.any.acp = {acp}")).unwrap();
        config.check().map_err(|why| why.to_string())?;
        Ok(config.agent(&AgentId::parse("any").unwrap()))
    }

    fn program(acp: &str) -> AcpProgram {
        read(acp).unwrap().acp_program(&AgentId::parse("any").unwrap()).unwrap()
    }

    #[test]
    fn program_is_named_as_in_grant() {
        let plain = program(r#"["opencode", "acp"]"#);
        assert_eq!((plain.name.as_str(), plain.path), ("opencode", None));
        assert_eq!(plain.args, ["acp"]);
        assert_eq!(plain.entry.unwrap().name, "OpenCode");
        let path = program(r#"["/opt/agents/mine", "--acp"]"#);
        assert_eq!((path.name.as_str(), path.path.as_deref()), ("mine", Some("/opt/agents/mine")));
        assert_eq!(path.entry, None);
        let odd = program(r#"["/opt/My Agents/Run Me"]"#);
        assert_eq!(
            (odd.name.as_str(), odd.path.as_deref()),
            ("any", Some("/opt/My Agents/Run Me"))
        );
        assert_eq!(Config::default().agent(&AgentId::parse("any").unwrap()).acp, [""; 0]);
    }

    #[test]
    fn invalid_commands_are_explained() {
        let wrong = |acp: &str| read(acp).unwrap_err();
        insta::assert_snapshot!(wrong(r#"["bin/agent"]"#), @"drive the program that `agents.any.acp` names: `bin/agent` is a relative path; name a program on the hub's PATH, or give an absolute path");
        for arg in ["{}", "[--yolo]", "", "a\\u202e"] {
            assert!(wrong(&format!(r#"["x", "{arg}"]"#)).contains("into a script"), "{arg}");
        }
    }
}
