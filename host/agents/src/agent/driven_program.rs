//! Program that an agent drives, as standing permissions describe it.

use super::Agent;
use a2a_hub_core::identity::LoginUser;
use a2a_hub_process::run_blocking;
use std::sync::Arc;

impl Agent {
    /// Name of the login for a task of `user` in `directory`; `Ok(None)` for the operator's own.
    ///
    /// # Errors
    ///
    /// The party has no login.
    pub async fn login_name(
        &self,
        user: &LoginUser,
        directory: Option<&str>,
    ) -> Result<Option<String>, String> {
        if !self.may_have_logins() {
            return Ok(None);
        }
        let (programs, user) = (Arc::clone(&self.programs), user.clone());
        let directory = directory.map(str::to_owned);
        let chosen = run_blocking(move || programs.login_of(&user, directory.as_deref())).await;
        Ok(chosen.map_err(|why| why.to_string())??.map(|login| login.name))
    }

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
