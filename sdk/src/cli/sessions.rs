//! The program's sessions, one a conversation, as many as the agent's memory holds.

use serde::{Deserialize, Serialize};

use super::Session;
use super::health::now;
use super::parked::Program;
use crate::{Context, Failure, Level};

/// Sessions are kept under this and the name of their conversation.
const PREFIX: &str = "session/";

/// A full memory loses this part of its sessions at once, so that it is gone through once in dozens of conversations
/// rather than with each.
const MAKES_ROOM: usize = 8;

/// The session of one conversation.
pub(super) struct Sessions<'a> {
    ctx: &'a Context,
    key: String,
}

/// A session as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// When it was last used, in seconds since 1970; long ago where nobody says.
    #[serde(default)]
    used: u64,
    #[serde(flatten)]
    session: Session,
    /// The program that answered last, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<Program>,
}

impl<'a> Sessions<'a> {
    pub(super) fn of(ctx: &'a Context, context_id: &str) -> Self {
        Self { ctx, key: format!("{PREFIX}{context_id}") }
    }

    /// The conversation's session, if it has one that is not forgotten.
    pub(super) fn last(&self) -> Result<Option<Session>, Failure> {
        let session = self.ctx.recall::<Kept>(&self.key)?.map(|kept| kept.session);
        Ok(session.filter(|session| !session.id.is_empty()))
    }

    /// The program that answered last, if it was kept then.
    pub(super) fn program(&self) -> Result<Option<Program>, Failure> {
        Ok(self.ctx.recall::<Kept>(&self.key)?.and_then(|kept| kept.program))
    }

    /// Keeps it for the conversation's next task. Where the memory is full, those that were not used for longest make room;
    /// a session that does not fit at all is not kept, for the work is worth more than its memory.
    pub(super) fn keep(&self, session: &Session, program: Option<&Program>) -> Result<(), Failure> {
        let kept = Kept { used: now(), session: session.clone(), program: program.cloned() };
        loop {
            let why = match self.ctx.remember(&self.key, &kept) {
                Err(Failure::Exhausted(why)) => why,
                done => return done,
            };
            if !self.make_room()? {
                self.ctx.log(Level::Warn, format!("{} is not kept: {why}", self.key));
                return Ok(());
            }
        }
    }

    /// The other conversation that keeps a program with this session, if there is one.
    pub(super) fn holder(&self, session: &str) -> Result<Option<(Self, Program)>, Failure> {
        for key in self.ctx.remembered(PREFIX)?.into_iter().filter(|key| *key != self.key) {
            let program = self.ctx.recall::<Kept>(&key)?.and_then(|kept| kept.program);
            if let Some(program) = program.filter(|it| it.idle().session.id == session) {
                return Ok(Some((Self { ctx: self.ctx, key }, program)));
            }
        }
        Ok(None)
    }

    /// Under which key the conversation's program is parked.
    pub(super) fn park_key(&self) -> String {
        self.key.replacen(PREFIX, "context/", 1)
    }

    pub(super) fn forget(&self) -> Result<(), Failure> {
        self.ctx.forget(&self.key)
    }

    /// Forgets some sessions of other conversations; false if there are none.
    fn make_room(&self) -> Result<bool, Failure> {
        let mut others = Vec::new();
        for key in self.ctx.remembered(PREFIX)?.into_iter().filter(|key| *key != self.key) {
            let used = self.ctx.recall::<Kept>(&key)?.map_or(0, |kept| kept.used);
            others.push((used, key));
        }
        others.sort_unstable();
        let some = others.len().div_ceil(MAKES_ROOM);
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
    fn the_longest_unused_make_room() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        for n in 0..16 {
            // The first was used last.
            let kept = json!({ "id": "x", "totals": {}, "used": 100 - n });
            ctx.remember(&format!("session/{n:02}"), &kept).unwrap();
        }
        ctx.remember("session/older", &json!({ "id": "before there was a time" })).unwrap();
        ctx.remember("check", "something else").unwrap();
        // There is room for the new one once the three oldest are gone.
        host.memory_bytes(700);

        let session = Session::new("the newest of them all");
        Sessions::of(&ctx, "new").keep(&session, None).unwrap();
        assert_eq!(Sessions::of(&ctx, "new").last().unwrap(), Some(session));
        let kept = ctx.remembered("").unwrap();
        assert_eq!(kept.first().map(String::as_str), Some("check"), "what is no session stays");
        let expected = (0..14).map(|n| format!("session/{n:02}"));
        assert_eq!(kept[1..], expected.chain(["session/new".into()]).collect::<Vec<_>>());
        assert_eq!(host.logs(), []);
    }

    #[test]
    fn what_does_not_fit_at_all_is_done_without() {
        let host = ScriptedHost::new();
        host.memory_bytes(10);
        let ctx = host.context();
        let sessions = Sessions::of(&ctx, "new");
        sessions.keep(&Session::new("a"), None).unwrap();
        assert_eq!(sessions.last().unwrap(), None);
        let [(Level::Warn, line)] = &host.logs()[..] else { panic!("{:?}", host.logs()) };
        assert!(line.starts_with("session/new is not kept: "), "{line}");
    }
}
