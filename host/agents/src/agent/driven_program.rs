//! Program that an agent drives, as standing permissions describe it.

use super::Agent;

impl Agent {
    /// True if the agent's programs may use logins of people or workspaces.
    pub fn may_have_logins(&self) -> bool {
        self.programs.may_have_logins()
    }

    /// True if the hub confines the agent's programs.
    pub fn confines_programs(&self) -> bool {
        self.programs.confining().is_some()
    }

    /// Directory in which the agent's programs start by default.
    pub fn default_directory(&self) -> Option<&str> {
        self.programs.first_directory().to_str()
    }

    /// Program that the agent drives, by the name that standing permissions have for it.
    pub fn vendor(&self) -> String {
        match (self.config.acp_program(&self.id), self.id.as_str()) {
            (Some(program), _) => program.name,
            (None, "claude-code") => "claude".to_owned(),
            (None, id) => id.to_owned(),
        }
    }
}
