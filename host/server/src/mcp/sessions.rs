//! The sessions of MCP over HTTP: whose each is, which requests it waits for, and which one ends when another needs its place.

use super::request_ids::{Refused, RequestIds};
use a2a_hub_core::access_control::Principal;
use std::collections::HashMap;
use tokio::time::Instant;

/// How many sessions there may be at once.
const MAX: usize = 256;

/// How many of them one caller may have.
const MAX_OF_ONE: usize = MAX / 4;

/// Who began each session, and what it is busy with.
#[derive(Default)]
pub(super) struct Sessions(HashMap<String, Session>);

struct Session {
    owner: Principal,
    /// Whose share of the sessions it is of: an agent has one, whatever it works on.
    identity: String,
    last_used: Instant,
    /// Responses that are being written, listening ones too.
    open: usize,
    /// The JSON-RPC ids of its requests, as JSON.
    requests: RequestIds<String>,
}

/// Whether one more session may begin.
#[derive(Debug, PartialEq)]
pub(super) enum Room {
    /// It may.
    Free,
    /// It may, once this one is ended, which was silent for longest.
    Instead(String),
    /// It may not: there are so many, and all are busy.
    Full(usize),
}

impl Sessions {
    /// Whether somebody else began this session.
    pub(super) fn is_of_another(&self, id: &str, caller: &Principal) -> bool {
        self.0.get(id).is_some_and(|session| session.owner != *caller)
    }

    /// Forgets the sessions that are over.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|id, _| is_there(id));
    }

    /// Whether this caller may begin one more. A caller that has its share gives up one of its own; where there are too many
    /// in all, whoever has most of them gives one up.
    pub(super) fn room(&self, caller: &Principal) -> Room {
        let identity = caller.identity();
        if self.of(&identity) >= MAX_OF_ONE {
            return self.instead_of_one_of(&identity).unwrap_or(Room::Full(MAX_OF_ONE));
        }
        if self.0.len() < MAX {
            return Room::Free;
        }
        let all = self.0.values().map(|session| &session.identity);
        let most = all.max_by_key(|identity| self.of(identity));
        most.and_then(|identity| self.instead_of_one_of(identity)).unwrap_or(Room::Full(MAX))
    }

    /// A session has begun.
    pub(super) fn begin(&mut self, id: String, owner: Principal, now: Instant) {
        let identity = owner.identity();
        let requests = RequestIds::default();
        self.0.insert(id, Session { owner, identity, last_used: now, open: 0, requests });
    }

    /// A request enters its session; `request` is its JSON-RPC id as JSON, nothing for what has none.
    pub(super) fn enter(
        &mut self,
        id: &str,
        request: Option<&str>,
        now: Instant,
    ) -> Result<(), Refused> {
        let Some(session) = self.0.get_mut(id) else { return Ok(()) };
        if let Some(request) = request {
            session.requests.begin(&request.to_owned())?;
        }
        session.open += 1;
        session.last_used = now;
        Ok(())
    }

    /// The response to what entered is over. The id of one that was not heard to its end stays taken: its answer may still
    /// come, and would be taken for that of the next.
    pub(super) fn leave(&mut self, id: &str, request: Option<&str>, heard_out: bool, now: Instant) {
        let Some(session) = self.0.get_mut(id) else { return };
        session.open -= 1;
        session.last_used = now;
        if let Some(request) = request.filter(|_| heard_out) {
            session.requests.answered(&request.to_owned());
        }
    }

    fn of(&self, identity: &str) -> usize {
        self.0.values().filter(|session| session.identity == identity).count()
    }

    fn instead_of_one_of(&self, identity: &str) -> Option<Room> {
        let of_one = self.0.iter().filter(|(_, session)| session.identity == identity);
        let idle = of_one.filter(|(_, session)| session.open == 0);
        let silent = idle.min_by_key(|(_, session)| session.last_used);
        silent.map(|(id, _)| Room::Instead(id.clone()))
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

    fn filled(owner: &Principal, sessions: usize) -> Sessions {
        let (mut all, start) = (Sessions::default(), Instant::now());
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
        assert_eq!(all.room(&one), Room::Instead(first.clone()));
        assert_eq!(all.room(&agent("other")), Room::Free);
        let later = Instant::now() + Duration::from_secs(3600);
        all.enter(&first, None, later).unwrap();
        assert_eq!(all.room(&one), Room::Instead(format!("{one:?} 1")), "a busy one stays");
        all.leave(&first, None, true, later);
        assert_eq!(all.room(&one), Room::Instead(format!("{one:?} 1")), "it was used since");
    }

    #[test]
    fn where_all_are_busy_there_is_no_room() {
        let one = agent("one");
        let mut all = filled(&one, MAX_OF_ONE);
        for at in 0..MAX_OF_ONE {
            all.enter(&format!("{one:?} {at}"), None, Instant::now()).unwrap();
        }
        assert_eq!(all.room(&one), Room::Full(MAX_OF_ONE));
    }

    #[test]
    fn who_has_most_makes_room_for_others() {
        let greedy = agent("greedy");
        let mut all = filled(&greedy, MAX_OF_ONE);
        for at in MAX_OF_ONE..MAX {
            all.begin(at.to_string(), agent(&format!("agent-{}", at / 60)), Instant::now());
        }
        assert_eq!(all.room(&agent("newcomer")), Room::Instead(format!("{greedy:?} 0")));
        all.retain(|id| id != "100");
        assert_eq!(all.room(&agent("newcomer")), Room::Free);
    }

    #[test]
    fn an_id_is_one_requests_until_its_answer_was_heard() {
        let (one, now) = (agent("one"), Instant::now());
        let mut all = filled(&one, 1);
        let id = format!("{one:?} 0");
        all.enter(&id, Some("7"), now).unwrap();
        assert_eq!(all.enter(&id, Some("7"), now), Err(Refused::IdInUse));
        all.enter(&id, Some("\"7\""), now).unwrap();
        all.leave(&id, Some("7"), true, now);
        all.enter(&id, Some("7"), now).unwrap();
        all.leave(&id, Some("7"), false, now);
        assert_eq!(all.enter(&id, Some("7"), now), Err(Refused::IdInUse));
        for at in 10..10 + MAX_REQUESTS - 2 {
            all.enter(&id, Some(&at.to_string()), now).unwrap();
        }
        assert_eq!(all.enter(&id, Some("new"), now), Err(Refused::TooMany(MAX_REQUESTS)));
    }
}
