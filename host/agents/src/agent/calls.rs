//! Calls from one agent to others: discovery and permission.

use super::Agent;
use a2a_hub_core::grant::delegate::Callee;
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    hub_metadata::ADDITIONAL_DIRECTORIES,
    id::AgentId,
    operation::{AgentQuery, FoundAgents},
};
use a2a_hub_runtime::Failure;
use a2a_hub_worktrees::RepositoryBounds;
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

impl Agent {
    /// True if the agent may call other agents.
    pub fn delegates(&self) -> bool {
        self.peers.is_some()
    }

    /// True if the agent may call some other agent now.
    pub fn may_call_any(&self) -> bool {
        self.delegates() && self.live.now().agents.granted().next().is_some()
    }

    /// True if the agent's programs may work in `directory`.
    pub fn may_work_in(&self, directory: &str) -> bool {
        self.programs.directory(Some(directory), None).is_ok()
    }

    /// Checks that the agent's programs may work in `directory`. An agent without programs works in
    /// no directory, so it accepts each one.
    pub async fn check_directory(&self, directory: &str) -> Result<(), Failure> {
        if self.effective.programs.is_empty() {
            return Ok(());
        }
        self.require_directory(directory).await
    }

    /// Requires that a workspace of the agent contains `directory`, also of an agent without
    /// programs.
    pub async fn require_directory(&self, directory: &str) -> Result<(), Failure> {
        let (programs, directory) = (Arc::clone(&self.programs), directory.to_owned());
        let opened =
            run_blocking(move || programs.directory(Some(&directory), None).map(drop)).await;
        opened.unwrap_or_else(|why| Err(Failure::Internal(why.to_string())))
    }

    /// Bounds of a repository that the agent works on, and of all that it refers to.
    pub async fn repository_bounds(&self) -> RepositoryBounds {
        let programs = Arc::clone(&self.programs);
        // Without an answer, nothing may lie anywhere.
        run_blocking(move || programs.repository_bounds()).await.unwrap_or_else(|_| {
            RepositoryBounds { workspaces: Some(Vec::new()), hidden: Vec::new() }
        })
    }

    /// Checks that the agent may work in each of these additional directories, and resolves their
    /// links. An agent without programs works in no directory, so it accepts each one, also a
    /// missing one; a remote agent accepts none.
    pub async fn additional_directories(&self, named: Vec<String>) -> Result<Vec<String>, Failure> {
        if named.is_empty() {
            return Ok(named);
        }
        if self.is_elsewhere() {
            return Err(Failure::Invalid(format!(
                "`{ADDITIONAL_DIRECTORIES}`: `{}` works on another machine, and in no directory of this one; leave them out, or \
                 attach files",
                self.id
            )));
        }
        let (programs, runs_none) =
            (Arc::clone(&self.programs), self.effective.programs.is_empty());
        let resolved = run_blocking(move || {
            let real = |named: &String| fs::canonicalize(named).unwrap_or_else(|_| named.into());
            let found = match runs_none {
                true => named.iter().map(real).collect(),
                false => programs.additional(&named, None)?,
            };
            let text = |path: PathBuf| match path.into_os_string().into_string() {
                Ok(path) => Ok(path),
                Err(path) => Err(Failure::Denied(format!(
                    "`{ADDITIONAL_DIRECTORIES}`: the path {} is not UTF-8; name another directory",
                    path.display()
                ))),
            };
            found.into_iter().map(text).collect()
        });
        resolved.await.unwrap_or_else(|why| Err(Failure::Internal(why.to_string())))
    }

    /// Cards of the agents that this one may call.
    pub fn peers(&self) -> Vec<Value> {
        self.peers.as_ref().map(|peers| peers.cards()).unwrap_or_default()
    }

    /// Searches the agents that this one may call.
    pub async fn find_peers(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        match &self.peers {
            Some(peers) => peers.search(query).await,
            None => Ok(FoundAgents::default()),
        }
    }

    /// Resolves an id or alias among the agents that this one may know; returns `name` if none
    /// matches.
    pub fn peer_called(&self, name: &AgentId) -> AgentId {
        // No alias takes the commands of a flow.
        let peers = self.peers.as_ref().filter(|_| !self.calls_script(name));
        peers.map_or_else(|| name.clone(), |peers| peers.called(name))
    }

    /// Aliases that the agent's manifest claims; they count once the operator approves the agent.
    pub(crate) fn claimed_aliases(&self) -> &BTreeSet<AgentId> {
        &self.runtime.ask().aliases
    }

    /// The callee of a call; `hint` is the skill that its message names.
    ///
    /// # Errors
    ///
    /// The call is not granted, or the agent or the skill does not exist.
    pub fn callee(&self, call: &Callee, hint: Option<&str>) -> Result<Callee, Failure> {
        match &self.peers {
            Some(peers) if !self.calls_script(&call.agent) => peers.callee(call, hint),
            Some(_) | None => self.may_call(&call.agent).map(|()| call.clone()),
        }
    }

    /// Refuses an agent that this one may not call now, for any of its skills.
    pub fn may_call(&self, agent: &AgentId) -> Result<(), Failure> {
        match &self.peers {
            Some(_) if self.calls_script(agent) && self.live.now().may_call(agent.as_str()) => {
                Ok(())
            }
            Some(peers) => peers.require_allowed(agent),
            None => {
                Err(Failure::Denied(format!("call `{agent}`: no agent is granted to this one")))
            }
        }
    }

    /// Waits until the operator revokes the right to call this agent or skill.
    pub async fn may_no_longer_call(&self, callee: &Callee) {
        let callee = callee.clone();
        let revocation = self.live.watch(move |grant| grant.agents.terms(&callee).is_some());
        revocation.token.cancelled().await;
    }
}
