//! Logins of a task: the one of its party, and the command with which the party logs in at the
//! vendor, started with the home of that login.

use super::{InstanceFiles, Placing, Programs, not_started};
use crate::port::logins::{login_directory, remedied};
use a2a_hub_core::identity::{Login, LoginUser};
use a2a_hub_process::{Child, Launch, run_blocking};
use a2a_hub_runtime::Failure;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// File in the home of a login that lasts while its command runs, so that one that was cut off is
/// started again.
const BEGUN: &str = ".a2a-hub-login-begun";

/// Running login command.
pub(crate) struct LoginCommand {
    pub(crate) child: Child,
    begun: PathBuf,
}

impl LoginCommand {
    /// Marks the login as complete. A command that empties its home has removed the mark itself.
    pub(crate) fn complete(&self) -> io::Result<()> {
        match fs::remove_file(&self.begun) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

impl Programs {
    /// Login for a task of `user` in `directory`; none for the operator's own. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The party has none; the text has the ways out.
    pub(crate) fn login_of(
        &self,
        user: &LoginUser,
        directory: Option<&str>,
    ) -> Result<Option<Login>, String> {
        let worktree = self.worktree(directory);
        let directory = directory.map_or(self.first_directory(), Path::new);
        let directory = login_directory(directory, worktree.as_ref());
        self.logins.choose(user, &directory).map_err(|why| remedied(&why, &self.agent))
    }

    /// Waits until no other task logs in by this login.
    pub(crate) async fn logging_in(&self, login: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let its = Arc::clone(self.logging_in.lock().entry(login.to_owned()).or_default());
        its.lock_owned().await
    }

    /// True if the agent's programs may use logins of people or workspaces.
    pub(crate) fn may_have_logins(&self) -> bool {
        !self.is_empty() && self.logins.any()
    }

    /// Starts the command of a login. None if it has no command, or was used before.
    pub(crate) async fn begin_login(
        self: &Arc<Self>,
        login: Login,
        owner: String,
        files: &Arc<InstanceFiles>,
    ) -> Result<Option<LoginCommand>, Failure> {
        let (programs, files) = (Arc::clone(self), Arc::clone(files));
        let prepared = run_blocking(move || programs.prepare_login(&login, owner, &files)).await;
        let prepared = prepared.map_err(|why| Failure::Internal(why.to_string()))??;
        let Some((launch, begun)) = prepared else { return Ok(None) };
        if let Some(confining) = &self.confining {
            confining.is_possible(&self.supervisor).await?;
        }
        let child = self.supervisor.spawn(launch).await.map_err(|why| not_started(&why))?;
        Ok(Some(LoginCommand { child, begun }))
    }

    /// Prepares the launch of a login command, and the path of its mark. Blocks on the disk.
    fn prepare_login(
        &self,
        login: &Login,
        owner: String,
        files: &InstanceFiles,
    ) -> Result<Option<(Launch, PathBuf)>, Failure> {
        let Login { name, command, .. } = login;
        let Some((program_name, args)) = command.split_first() else { return Ok(None) };
        let Some(program) = self.programs.get(program_name) else {
            let known: Vec<_> = self.programs.keys().map(|name| format!("`{name}`")).collect();
            return Err(Failure::Denied(format!(
                "run `{program_name}`, the command of the login `{name}`: `{}` may run {}; correct `login.{name}.command`",
                self.agent,
                known.join(", ")
            )));
        };
        let path = self.path(program_name)?;
        self.guard(program_name, &path)?;
        let keeps = Some(&program.keeps);
        let login = self.logins.open(login, keeps, self.confining.is_some())?;
        let begun = login.home.join(BEGUN);
        let unread = |why: io::Error| {
            Failure::Unavailable(format!("read the home of the login `{name}`: {why}"))
        };
        let is_unused = fs::read_dir(&login.home).map_err(unread)?.next().is_none();
        if !is_unused && begun.symlink_metadata().is_err() {
            return Ok(None);
        }
        // A program with this login could have made the mark a link: no link is followed.
        match fs::File::create_new(&begun) {
            Err(why) if why.kind() != io::ErrorKind::AlreadyExists => return Err(unread(why)),
            Ok(_) | Err(_) => {}
        }
        let temporary = self.make_places(files)?;
        let env = self.environment(&program.pass, &[], Some(&login), &path, &temporary);
        let launch = self.placed(Placing {
            owner,
            program: path,
            keeps,
            login: Some(&login),
            hub_access: None,
            args: args.to_vec(),
            env,
            cwd: self.directory(None, None)?,
            additional: &[],
            worktree: None,
            temporary,
        })?;
        Ok(Some((launch, begun)))
    }
}
