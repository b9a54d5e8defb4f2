//! Sessions of MCP over HTTP: their owners, their open requests, and the choice of a session to end
//! when another one needs its slot.

use super::request_ids::{RequestIdError, RequestIds};
use a2a_hub_core::access_control::Principal;
use std::collections::HashMap;
use tokio::time::Instant;

/// Maximum number of sessions.
const MAX: usize = 256;

/// Maximum number of sessions of one caller.
const MAX_OF_ONE: usize = MAX / 4;

/// Maximum number of sessions of all callers but the operator.
const MAX_OF_OTHERS: usize = MAX - MAX_OF_ONE;

/// Open sessions by their ids.
#[derive(Default)]
pub(super) struct McpSessions(HashMap<String, OpenMcpSession>);

struct OpenMcpSession {
    owner: Principal,
    /// Caller to whose limit the session counts. All tasks of an agent count to one limit.
    identity: String,
    last_used: Instant,
    /// Number of responses that are being written, including event streams.
    open: usize,
    /// JSON-RPC ids of the session's open requests, as JSON.
    requests: RequestIds<String>,
}

/// Admission of one more session.
#[derive(Debug, PartialEq)]
pub(super) enum SessionPermit {
    /// Capacity is left.
    Free,
    /// Capacity is left once this session is ended, which was idle longest.
    Instead(String),
    /// This limit on sessions is reached, and all of them are busy.
    Full(usize),
}

impl McpSessions {
    /// True if another caller began this session.
    pub(super) fn is_of_another(&self, id: &str, caller: &Principal) -> bool {
        self.0.get(id).is_some_and(|session| session.owner != *caller)
    }

    /// Removes the sessions that have ended.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|id, _| is_there(id));
    }

    /// Decides on one more session of this caller. At its limit, a caller loses one of its
    /// sessions. At a common limit, the caller with the most sessions, other than the operator,
    /// loses one.
    pub(super) fn permit(&self, caller: &Principal) -> SessionPermit {
        let identity = caller.identity();
        if self.count_of(&identity) >= MAX_OF_ONE {
            return self.instead_of_one_of(&identity).unwrap_or(SessionPermit::Full(MAX_OF_ONE));
        }
        let is_operator = |owner: &Principal| match owner {
            Principal::Operator | Principal::OperatorHttp => true,
            Principal::OperatorToken
            | Principal::Device { .. }
            | Principal::AgentTask { .. }
            | Principal::Automation { .. }
            | Principal::Client(_)
            | Principal::Person { .. }
            | Principal::Anonymous => false,
        };
        let others = || self.0.values().filter(|session| !is_operator(&session.owner));
        let max = if is_operator(caller) { MAX } else { MAX_OF_OTHERS };
        let taken = if is_operator(caller) { self.0.len() } else { others().count() };
        if taken < max {
            return SessionPermit::Free;
        }
        let has_idle = |identity: &&String| self.instead_of_one_of(identity).is_some();
        let whose = others().map(|session| &session.identity).filter(has_idle);
        let whose = whose.max_by_key(|identity| self.count_of(identity));
        whose
            .and_then(|identity| self.instead_of_one_of(identity))
            .unwrap_or(SessionPermit::Full(max))
    }

    /// Records a new session.
    pub(super) fn begin(&mut self, id: String, owner: Principal, now: Instant) {
        let identity = owner.identity();
        let requests = RequestIds::default();
        self.0.insert(id, OpenMcpSession { owner, identity, last_used: now, open: 0, requests });
    }

    /// Records a request in its session; `request` is its JSON-RPC id as JSON, none for a message
    /// without an id.
    pub(super) fn enter(
        &mut self,
        id: &str,
        request: Option<&str>,
        now: Instant,
    ) -> Result<(), RequestIdError> {
        let Some(session) = self.0.get_mut(id) else { return Ok(()) };
        if let Some(request) = request {
            session.requests.begin(&request.to_owned())?;
        }
        session.open += 1;
        session.last_used = now;
        Ok(())
    }

    /// Records the end of a response. The id of a response that was not sent completely stays in
    /// use: its answer may still arrive, and a client would take it for the answer to the next
    /// request.
    pub(super) fn exit(
        &mut self,
        id: &str,
        request: Option<&str>,
        fully_received: bool,
        now: Instant,
    ) {
        let Some(session) = self.0.get_mut(id) else { return };
        session.open -= 1;
        session.last_used = now;
        if let Some(request) = request.filter(|_| fully_received) {
            session.requests.answered(&request.to_owned());
        }
    }

    fn count_of(&self, identity: &str) -> usize {
        self.0.values().filter(|session| session.identity == identity).count()
    }

    fn instead_of_one_of(&self, identity: &str) -> Option<SessionPermit> {
        let of_one = self.0.iter().filter(|(_, session)| session.identity == identity);
        let idle = of_one.filter(|(_, session)| session.open == 0);
        let silent = idle.min_by_key(|(_, session)| session.last_used);
        silent.map(|(id, _)| SessionPermit::Instead(id.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::request_ids::MAX_REQUESTS;
    use a2a_hub_protocol::id::AgentId;
    use std::time::Duration;

    fn agent(name: &str) -> Principal {
        Principal::of_tree(AgentId::parse(name).unwrap(), "1")
    }

    fn filled(owner: &Principal, sessions: usize) -> McpSessions {
        let (mut all, start) = (McpSessions::default(), Instant::now());
        for at in 0..sessions {
            let now = start + Duration::from_secs(at as u64);
            all.begin(format!("{owner:?} {at}"), owner.clone(), now);
        }
        all
    }

    #[test]
    fn who_has_its_share_gives_up_the_session_that_was_silent_for_longest() {
        let one = agent("one");
        let mut all = filled(&one, MAX_OF_ONE);
        let first = format!("{one:?} 0");
        assert_eq!(all.permit(&one), SessionPermit::Instead(first.clone()));
        assert_eq!(all.permit(&agent("other")), SessionPermit::Free);
        let later = Instant::now() + Duration::from_secs(3600);
        all.enter(&first, None, later).unwrap();
        assert_eq!(
            all.permit(&one),
            SessionPermit::Instead(format!("{one:?} 1")),
            "a busy one stays"
        );
        all.exit(&first, None, true, later);
        assert_eq!(
            all.permit(&one),
            SessionPermit::Instead(format!("{one:?} 1")),
            "it was used since"
        );
    }

    #[test]
    fn where_all_are_busy_there_is_no_room() {
        let one = agent("one");
        let mut all = filled(&one, MAX_OF_ONE);
        for at in 0..MAX_OF_ONE {
            all.enter(&format!("{one:?} {at}"), None, Instant::now()).unwrap();
        }
        assert_eq!(all.permit(&one), SessionPermit::Full(MAX_OF_ONE));
    }

    #[test]
    fn who_has_most_makes_room_for_others() {
        let greedy = agent("greedy");
        let mut all = filled(&greedy, MAX_OF_ONE);
        for at in MAX_OF_ONE..MAX_OF_OTHERS {
            all.begin(at.to_string(), agent(&format!("agent-{}", at / 60)), Instant::now());
        }
        assert_eq!(all.permit(&agent("newcomer")), SessionPermit::Instead(format!("{greedy:?} 0")));
        all.retain(|id| id != "100");
        assert_eq!(all.permit(&agent("newcomer")), SessionPermit::Free);
    }

    #[test]
    fn busy_sessions_of_agents_leave_a_quarter_to_the_operator() {
        let mut all = McpSessions::default();
        for at in 0..MAX_OF_OTHERS {
            let owner = agent(&format!("agent-{}", at / MAX_OF_ONE));
            all.begin(at.to_string(), owner, Instant::now());
            all.enter(&at.to_string(), None, Instant::now()).unwrap();
        }
        assert_eq!(all.permit(&agent("newcomer")), SessionPermit::Full(MAX_OF_OTHERS));
        assert_eq!(all.permit(&Principal::Operator), SessionPermit::Free);
    }

    #[test]
    fn an_id_is_one_requests_until_its_answer_was_heard() {
        let (one, now) = (agent("one"), Instant::now());
        let mut all = filled(&one, 1);
        let id = format!("{one:?} 0");
        all.enter(&id, Some("7"), now).unwrap();
        assert_eq!(all.enter(&id, Some("7"), now), Err(RequestIdError::IdInUse));
        all.enter(&id, Some("\"7\""), now).unwrap();
        all.exit(&id, Some("7"), true, now);
        all.enter(&id, Some("7"), now).unwrap();
        all.exit(&id, Some("7"), false, now);
        assert_eq!(all.enter(&id, Some("7"), now), Err(RequestIdError::IdInUse));
        for at in 10..10 + MAX_REQUESTS - 2 {
            all.enter(&id, Some(&at.to_string()), now).unwrap();
        }
        assert_eq!(all.enter(&id, Some("new"), now), Err(RequestIdError::TooMany(MAX_REQUESTS)));
    }
}
