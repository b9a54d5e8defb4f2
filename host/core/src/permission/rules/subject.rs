//! Request that rules are compared with, and its parts.

use a2a_hub_protocol::{
    id::AgentId,
    permission::{Action, ActionPattern, PermissionRequest, PermissionRule, RuleEffect},
};

/// Facts about the task whose agent's program asks, which rules depend on.
#[derive(Clone, Debug)]
pub struct RequestScope {
    /// Agent whose program asks.
    pub agent: AgentId,
    /// Agents above it in the tree of tasks, from the root on.
    pub through: Vec<AgentId>,
    /// Absolute directory of the checkout in which the program works: the worktree, or the
    /// repository itself.
    pub root: String,
    /// Identity of the repository: the absolute path of the source repository, or of the task's
    /// directory if that is in no repository.
    pub repository: String,
    /// Principal that began the tree of tasks, if it is known.
    pub principal: Option<String>,
    /// True if the hub's sandbox confines the program.
    pub confined: bool,
}

impl RequestScope {
    /// Request in this scope. `is_sensitive` is true for a path, relative to the repository, of a
    /// file that programs obey; `now` is in RFC 3339 in UTC.
    pub fn subject<'a>(
        &'a self,
        request: &'a PermissionRequest,
        is_sensitive: &'a dyn Fn(&str) -> bool,
        now: &'a str,
    ) -> RuleSubject<'a> {
        RuleSubject {
            request,
            agent: &self.agent,
            through: &self.through,
            root: &self.root,
            repository: &self.repository,
            principal: self.principal.as_deref(),
            confined: self.confined,
            is_sensitive,
            now,
        }
    }

    /// Rule that allows what the pattern matches, for requests of the same program in this scope.
    /// It has no id, no maker and no expiry, and trusts no code of the workspace.
    pub fn rule(
        &self,
        request: &PermissionRequest,
        pattern: ActionPattern,
        now: &str,
    ) -> PermissionRule {
        PermissionRule {
            id: String::new(),
            effect: RuleEffect::Allow,
            pattern,
            text: None,
            agent: Some(self.agent.clone()),
            through: self.through.clone(),
            vendor: Some(request.vendor.clone()),
            outside_sandbox: request.outside_sandbox,
            repository: Some(self.repository.clone()),
            principal: self.principal.clone(),
            trusts_workspace: false,
            created_at: now.to_owned(),
            created_by: String::new(),
            expires_at: None,
            from_question: None,
        }
    }
}

/// Request of an agent's program, with the facts of its task that rules depend on.
#[derive(Clone, Copy)]
pub struct RuleSubject<'a> {
    /// Request.
    pub request: &'a PermissionRequest,
    /// Agent whose program asks.
    pub agent: &'a AgentId,
    /// Agents above it in the tree of tasks, from the root on.
    pub through: &'a [AgentId],
    /// Absolute directory of the checkout in which the program works: the worktree, or the
    /// repository itself.
    pub root: &'a str,
    /// Identity of the repository: the absolute path of the source repository, or of the task's
    /// directory if that is in no repository.
    pub repository: &'a str,
    /// Principal that began the tree of tasks, if it is known.
    pub principal: Option<&'a str>,
    /// True if the hub's sandbox confines the program.
    pub confined: bool,
    /// True for a path, relative to the repository, of a file that programs obey.
    pub is_sensitive: &'a dyn Fn(&str) -> bool,
    /// Time: RFC 3339 in UTC.
    pub now: &'a str,
}

/// Command or path of a request, which a rule matches by itself.
#[derive(Clone, Copy)]
pub(super) enum RequestPart<'a> {
    Run { words: &'a [String], directory: &'a str },
    Edit { path: &'a str },
    Read { path: &'a str },
}

/// Parts of an action that each need a rule.
pub(super) fn parts(action: &Action) -> Vec<RequestPart<'_>> {
    match action {
        Action::Run { commands, directory } => {
            commands.iter().map(|words| RequestPart::Run { words, directory }).collect()
        }
        Action::Edit { paths } => paths.iter().map(|path| RequestPart::Edit { path }).collect(),
        Action::Read { paths } => paths.iter().map(|path| RequestPart::Read { path }).collect(),
        Action::Other { .. } => Vec::new(),
    }
}
