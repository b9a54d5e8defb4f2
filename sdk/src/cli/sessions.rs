//! Sessions of the program, one per conversation, as many as the agent's memory holds.

use serde::{Deserialize, Serialize};

use super::Session;
use super::health::now;
use super::program_record::ProgramRecord;
use crate::{Context, Failure, Level};

/// Prefix of the memory keys; the id of the conversation follows.
const PREFIX: &str = "session/";

/// Fraction of the sessions that a full memory drops at once, so that it is scanned once in dozens
/// of conversations rather than in each.
const EVICTED_FRACTION: usize = 8;

/// Session of one conversation.
pub(super) struct Sessions<'a> {
    ctx: &'a Context,
    key: String,
}

/// Stored record of a session.
#[derive(Serialize, Deserialize)]
struct SessionRecord {
    /// Time of the last use, in seconds since 1970; zero if unknown.
    #[serde(default)]
    used: u64,
    #[serde(flatten)]
    session: Session,
    /// Program that answered last, if it was parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<ProgramRecord>,
}

impl<'a> Sessions<'a> {
    pub(super) fn new(ctx: &'a Context, context_id: &str) -> Self {
        Self { ctx, key: format!("{PREFIX}{context_id}") }
    }

    /// Session of the conversation, if it is still stored.
    pub(super) fn last(&self) -> Result<Option<Session>, Failure> {
        let session = self.ctx.recall::<SessionRecord>(&self.key)?.map(|record| record.session);
        Ok(session.filter(|session| !session.id.is_empty()))
    }

    /// Program that answered last, if it was parked.
    pub(super) fn program(&self) -> Result<Option<ProgramRecord>, Failure> {
        Ok(self.ctx.recall::<SessionRecord>(&self.key)?.and_then(|record| record.program))
    }

    /// Stores the session for the conversation's next task. If the memory is full, the least
    /// recently used sessions are dropped. A session that does not fit at all is not stored: the
    /// work matters more.
    pub(super) fn store(
        &self,
        session: &Session,
        program: Option<&ProgramRecord>,
    ) -> Result<(), Failure> {
        let record =
            SessionRecord { used: now(), session: session.clone(), program: program.cloned() };
        loop {
            let why = match self.ctx.remember(&self.key, &record) {
                Err(Failure::Exhausted(why)) => why,
                done => return done,
            };
            if !self.evict()? {
                self.ctx.log(Level::Warn, format!("cannot store {}: {why}", self.key));
                return Ok(());
            }
        }
    }

    /// Other conversation that has a program with this session, if any.
    pub(super) fn holder(&self, session: &str) -> Result<Option<(Self, ProgramRecord)>, Failure> {
        for key in self.ctx.remembered(PREFIX)?.into_iter().filter(|key| *key != self.key) {
            let program = self.ctx.recall::<SessionRecord>(&key)?.and_then(|record| record.program);
            if let Some(program) = program.filter(|it| it.idle().session.id == session) {
                return Ok(Some((Self { ctx: self.ctx, key }, program)));
            }
        }
        Ok(None)
    }

    /// Key under which the conversation's program is parked.
    pub(super) fn park_key(&self) -> String {
        self.key.replacen(PREFIX, "context/", 1)
    }

    pub(super) fn forget(&self) -> Result<(), Failure> {
        self.ctx.forget(&self.key)
    }

    /// Drops some sessions of other conversations; false if none exist.
    fn evict(&self) -> Result<bool, Failure> {
        let mut others = Vec::new();
        for key in self.ctx.remembered(PREFIX)?.into_iter().filter(|key| *key != self.key) {
            let used = self.ctx.recall::<SessionRecord>(&key)?.map_or(0, |record| record.used);
            others.push((used, key));
        }
        others.sort_unstable();
        let some = others.len().div_ceil(EVICTED_FRACTION);
        for (_, key) in &others[..some] {
            self.ctx.forget(key)?;
        }
        Ok(some > 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::ScriptedHost;

    #[test]
    fn least_recently_used_sessions_are_dropped() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        for n in 0..16 {
            // The first one is the most recently used.
            let kept = json!({ "id": "x", "totals": {}, "used": 100 - n });
            ctx.remember(&format!("session/{n:02}"), &kept).unwrap();
        }
        ctx.remember("session/older", &json!({ "id": "before there was a time" })).unwrap();
        ctx.remember("check", "something else").unwrap();
        // The new session fits once the three oldest are dropped.
        host.memory_bytes(700);

        let session = Session::new("the newest of them all");
        Sessions::new(&ctx, "new").store(&session, None).unwrap();
        assert_eq!(Sessions::new(&ctx, "new").last().unwrap(), Some(session));
        let kept = ctx.remembered("").unwrap();
        assert_eq!(kept.first().map(String::as_str), Some("check"), "what is no session stays");
        let expected = (0..14).map(|n| format!("session/{n:02}"));
        assert_eq!(kept[1..], expected.chain(["session/new".into()]).collect::<Vec<_>>());
        assert_eq!(host.logs(), []);
    }

    #[test]
    fn too_large_session_is_not_stored() {
        let host = ScriptedHost::new();
        host.memory_bytes(10);
        let ctx = host.context();
        let sessions = Sessions::new(&ctx, "new");
        sessions.store(&Session::new("a"), None).unwrap();
        assert_eq!(sessions.last().unwrap(), None);
        let [(Level::Warn, line)] = &host.logs()[..] else { panic!("{:?}", host.logs()) };
        assert!(line.starts_with("cannot store session/new: "), "{line}");
    }
}
