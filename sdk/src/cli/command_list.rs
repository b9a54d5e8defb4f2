//! Commands of the program, such as `/compact`, as the member `commands` of metadata.
//!
//! The list is for people. No driver executes a command: programs execute their own without asking
//! for permission, at any level. Gemini CLI, for example, installs extensions, and Vibe changes its
//! settings. So each command is reported with `callable: false`, and editors offer none.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Context, Failure, Level, foreign};

/// Maximum number of commands in a list.
const MAX_COMMANDS: usize = 300;

/// Maximum length of a command's name in characters.
const MAX_NAME: usize = 80;

/// Maximum length of a description in characters.
const MAX_TEXT: usize = 160;

/// Maximum size of a list in bytes, with what JSON adds to each command.
const MAX_BYTES: usize = 32 * 1024;

/// Size that JSON adds to the texts of a command.
const FRAME: usize = 64;

/// Maximum size of a stored list as JSON. The agent's memory is for its sessions: with a larger
/// list, only turns in which the program sends it report it.
const MAX_STORED_BYTES: usize = 8 * 1024;

/// Maximum number of stored lists. Conversations share a list; programs in different directories
/// may have different ones.
const MAX_STORED: usize = 2;

/// Prefix of the memory keys; the digest of the list follows.
const PREFIX: &str = "commands/";

/// Commands of a program, in its order. The names are unique.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CommandList(Vec<ProgramCommand>);

/// Command of a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ProgramCommand {
    /// Name without a slash and white space.
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// Description of the text behind the name; `None` if the command takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl CommandList {
    /// Reads the list of a program that speaks the Agent Client Protocol (`availableCommands`);
    /// `None` for any other value. Items that name no command are left out, and so is what exceeds
    /// the limits.
    pub fn parse(reported: &Value) -> Option<Self> {
        let (mut names, mut free_bytes) = (BTreeSet::new(), MAX_BYTES);
        let fits = |command: &ProgramCommand| {
            let rest = free_bytes.checked_sub(command.size());
            free_bytes = rest.unwrap_or_default();
            rest.is_some()
        };
        let commands = reported.as_array()?.iter().filter_map(ProgramCommand::parse);
        let commands = commands.filter(|command| names.insert(command.name.clone()));
        Some(Self(commands.take(MAX_COMMANDS).take_while(fits).collect()))
    }

    /// Metadata of a status that reports the list.
    pub fn facts(&self) -> Map<String, Value> {
        let commands = self.0.iter().map(ProgramCommand::fact).collect();
        Map::from_iter([("commands".to_owned(), commands)])
    }

    /// Digest that names the list in the agent's memory.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Stores the list for later turns of an idle program, if the memory has capacity. Returns its
    /// digest.
    ///
    /// # Errors
    ///
    /// [`Failure::Cancelled`] only.
    pub(super) fn store(&self, ctx: &Context) -> Result<u64, Failure> {
        let digest = self.digest();
        let store = || -> Result<(), Failure> {
            let (key, stored) = (key(digest), ctx.remembered(PREFIX)?);
            if stored.contains(&key) {
                return Ok(());
            }
            for old in stored.iter().skip(MAX_STORED - 1) {
                ctx.forget(old)?;
            }
            ctx.remember(&key, self)
        };
        let is_short = json!(self).to_string().len() <= MAX_STORED_BYTES;
        let stored = if is_short { store() } else { Ok(()) };
        match stored {
            Err(Failure::Cancelled) => return Err(Failure::Cancelled),
            Err(why) => ctx.log(Level::Debug, format!("cannot store commands: {}", why.text())),
            Ok(()) => {}
        }
        Ok(digest)
    }

    /// Stored list with this digest; `None` if it is gone.
    ///
    /// # Errors
    ///
    /// [`Failure::Cancelled`] only.
    pub(super) fn stored(ctx: &Context, digest: u64) -> Result<Option<Self>, Failure> {
        match ctx.recall(&key(digest)) {
            Err(Failure::Cancelled) => Err(Failure::Cancelled),
            recalled => Ok(recalled.ok().flatten()),
        }
    }
}

fn key(digest: u64) -> String {
    format!("{PREFIX}{digest:016x}")
}

impl ProgramCommand {
    /// Reads one item; `None` without a name.
    fn parse(reported: &Value) -> Option<Self> {
        let name = reported["name"].as_str().or_else(|| reported.as_str())?;
        let name = name.strip_prefix('/').unwrap_or(name);
        let is_odd = |c: char| c.is_whitespace() || c.is_control();
        let fits = (1..=MAX_NAME).contains(&name.chars().count());
        if !fits || name.starts_with('/') || name.contains(is_odd) {
            return None;
        }
        let description = line(&reported["description"]).unwrap_or_default();
        Some(Self { name: name.to_owned(), description, hint: line(&reported["input"]["hint"]) })
    }

    /// Size in bytes, about that of its JSON.
    fn size(&self) -> usize {
        let hint = self.hint.as_ref().map_or(0, String::len);
        FRAME + self.name.len() + self.description.len() + hint
    }

    /// Entry of the metadata.
    fn fact(&self) -> Value {
        let mut fact =
            json!({ "name": self.name, "description": self.description, "callable": false });
        if let (Some(hint), Some(members)) = (&self.hint, fact.as_object_mut()) {
            members.insert("hint".to_owned(), hint.as_str().into());
        }
        fact
    }
}

/// Text as one short line without control characters; `None` if it is none.
fn line(text: &Value) -> Option<String> {
    let text = foreign::text(text)?;
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => Some(format!("{}…", &line[..end])),
        None => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ScriptedHost, reshaped};

    fn facts(reported: &Value) -> Option<Value> {
        Some(CommandList::parse(reported)?.facts()["commands"].take())
    }

    fn names(reported: &Value) -> Vec<String> {
        let list = CommandList::parse(reported).unwrap_or_default().0;
        list.into_iter().map(|command| command.name).collect()
    }

    #[test]
    fn reported_commands_become_metadata() {
        let reported = json!([
            { "name": "/compact", "description": "Shorten\n the\u{1b}[1m rest", "input": { "hint": "what to keep" } },
            { "name": "nested/init", "description": "x".repeat(500), "input": null, "_meta": {} },
        ]);
        let init = format!("{}…", "x".repeat(160));
        let wanted = json!([
            { "name": "compact", "description": "Shorten the [1m rest", "callable": false, "hint": "what to keep" },
            { "name": "nested/init", "description": init, "callable": false },
        ]);
        assert_eq!(facts(&reported), Some(wanted));
        for odd in reshaped(&reported) {
            assert_eq!(facts(&odd).is_some(), odd.is_array(), "{odd}");
        }
    }

    #[test]
    fn odd_lists_are_read_or_ignored() {
        for (reported, wanted) in [
            (json!([]), Some(vec![])),
            (json!(["init", "/plan", "two words", ""]), Some(vec!["init", "plan"])),
            (json!([{ "name": "memory show" }, { "name": "memory" }]), Some(vec!["memory"])),
            (json!([{ "name": "a" }, { "name": "/a" }, { "name": "a" }]), Some(vec!["a"])),
            (json!([{ "name": "//a" }, { "name": "/" }, { "name": "a\u{7}" }]), Some(vec![])),
            (json!([{ "name": 7 }, { "name": ["a"] }, { "name": null }, {}, []]), Some(vec![])),
            (json!([{ "name": "x".repeat(81) }, { "name": "ä".repeat(80) }]), None),
            (json!([null, true, 1e300, -0.0, [["a"]]]), Some(vec![])),
        ] {
            let wanted = wanted.map_or_else(
                || vec!["ä".repeat(80)],
                |names: Vec<&str>| names.into_iter().map(str::to_owned).collect(),
            );
            assert_eq!(names(&reported), wanted, "{reported}");
            assert!(facts(&reported).is_some(), "{reported}");
        }
        for odd in [json!(null), json!({}), json!({ "0": { "name": "a" } }), json!("a"), json!(1)] {
            assert_eq!(facts(&odd), None, "{odd}");
        }
        let odd = json!([{ "name": "a", "description": [1, { "text": " b " }], "input": "c" },
            { "name": "d", "description": {}, "input": { "hint": 7 } }]);
        let read = json!([{ "name": "a", "description": "1 b", "callable": false },
            { "name": "d", "description": "", "callable": false, "hint": "7" }]);
        assert_eq!(facts(&odd), Some(read));
    }

    #[test]
    fn list_is_bounded() {
        let many: Value = (0..1_000).map(|n| json!({ "name": format!("c{n}") })).collect();
        assert_eq!(names(&many).len(), MAX_COMMANDS);
        let text = "ä".repeat(1_000);
        let long = |n: usize| json!({ "name": format!("c{n}"), "description": text, "input": { "hint": text } });
        let listed = facts(&(0..1_000).map(long).collect()).unwrap();
        let count = listed.as_array().map_or(0, Vec::len);
        assert!((40..MAX_COMMANDS).contains(&count), "{count}");
        assert!(listed.to_string().len() <= MAX_BYTES + count * FRAME, "{count}");
    }

    #[test]
    fn memory_holds_few_short_lists() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        let list = |name: &str| CommandList::parse(&json!([{ "name": name }])).unwrap();
        let mut digests: Vec<_> =
            ["a", "b", "b", "c"].map(|name| list(name).store(&ctx).unwrap()).into();
        assert_eq!(CommandList::stored(&ctx, digests[3]), Ok(Some(list("c"))));
        digests.dedup();
        assert_eq!((digests.len(), ctx.remembered(PREFIX).unwrap().len()), (3, MAX_STORED));

        let text = "x".repeat(150);
        let long = (0..60).map(|n| json!({ "name": format!("c{n}"), "description": text }));
        let long = CommandList::parse(&long.collect()).unwrap();
        let digest = long.store(&ctx).unwrap();
        assert_eq!(CommandList::stored(&ctx, digest), Ok(None), "too long to be stored");
        host.memory_bytes(10);
        let digest = list("d").store(&ctx).unwrap();
        assert_eq!(CommandList::stored(&ctx, digest), Ok(None), "the memory is full");
    }
}
