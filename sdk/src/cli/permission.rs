//! The program's questions: may I use this tool, and what do you want?
//!
//! The operator's permissions decide what they can; the client decides the rest. Everything that is no clear yes is a no.

use serde_json::{Value, json};

use crate::{Context, Message, Part};

/// What the operator lets the program do without asking: `permissions` of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Permissions {
    /// Asks the client about everything the program asks.
    #[default]
    Ask,
    /// Nothing that changes anything, whoever says yes.
    ReadOnly,
    /// Files may be changed; the client is asked about the rest.
    Edit,
    /// Everything.
    Full,
}

/// What kind of thing the program asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reading something that the program does not read by itself: in the task's directory it asks nobody.
    Read,
    /// Changing a file.
    Edit,
    /// Running a command, or anything else with effects.
    Run,
    /// An open question of the model, whose answer is a text.
    Open,
}

/// A question that the program waits on.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The program's name for it.
    pub id: Value,
    /// What kind of thing it is about.
    pub kind: Kind,
    /// The tool that is to be used.
    pub tool: String,
    /// What the tool is given.
    pub input: Value,
    /// What the program says of it, or the text of an open question.
    pub description: Option<String>,
    /// Where the tool would run.
    pub directory: Option<String>,
    /// Whether it can be allowed for the rest of the run.
    pub for_session: bool,
}

/// What was decided about a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Yes, this once.
    Allow,
    /// Yes, and for everything like it in the rest of the run.
    AllowForSession,
    /// No, and why.
    Deny(String),
    /// The answer to an open question.
    Said(Box<Message>),
}

impl Permissions {
    /// What the operator set for this agent; what this version does not know counts as the least.
    pub fn of(ctx: &Context) -> Self {
        match ctx.setting("permissions").as_deref() {
            None | Some("ask") => Self::Ask,
            Some("edit") => Self::Edit,
            Some("full") => Self::Full,
            Some(_) => Self::ReadOnly,
        }
    }

    /// What needs no client to decide.
    pub fn decide(self, kind: Kind) -> Option<Decision> {
        match (self, kind) {
            (_, Kind::Open)
            | (Self::Ask, _)
            | (Self::ReadOnly | Self::Edit, Kind::Read)
            | (Self::Edit, Kind::Run) => None,
            (Self::Full, _) | (Self::Edit, Kind::Edit) => Some(Decision::Allow),
            (Self::ReadOnly, Kind::Edit | Kind::Run) => Some(Decision::Deny(
                "the operator lets this agent only read (`permissions = \"read-only\"`)".into(),
            )),
        }
    }
}

/// Whether `path` lies below `directory`, as both are written: permission to edit ends at the task's directory. A path
/// that climbs does not. Where links lead an agent cannot see: its program must have followed them, or tell that one leads
/// away.
pub fn is_below(path: &str, directory: &str) -> bool {
    let below = path.strip_prefix(directory.trim_end_matches('/'));
    below.is_some_and(|rest| rest.starts_with('/')) && !path.split('/').any(|step| step == "..")
}

/// The text of an answer to an open question. An answer without text is its data: a string as it is, other JSON as its text.
pub fn answer_text(answer: &Message) -> String {
    let text = answer.text();
    if !text.is_empty() {
        return text;
    }
    match answer.data() {
        Some(Value::String(text)) => text,
        Some(data) => data.to_string(),
        None => text,
    }
}

impl Question {
    /// What the client is asked: a text for people, data for programs.
    pub fn prompt(&self, agent: &str) -> Message {
        let mut data = json!({ "tool": self.tool, "input": self.input });
        if let Some(directory) = &self.directory {
            data["directory"] = directory.as_str().into();
        }
        if self.kind == Kind::Open {
            let text = self.description.clone().unwrap_or_else(|| self.input.to_string());
            return Message::from(text).with(Part::data(&data));
        }
        data["choices"] = json!(["allow", "allow-session", "deny"]);
        if !self.for_session {
            data["choices"] = json!(["allow", "deny"]);
        }
        let prompt = Message::from(self.request(agent)).with(Part::data(&data));
        // An answer that comes when the program is gone must not be taken for leave to do anything else.
        prompt.with_metadata(&json!({ "question": { "kind": "permission" } }))
    }

    /// What the client's answer decides.
    pub fn decision(&self, answer: Message) -> Decision {
        if self.kind == Kind::Open {
            return Decision::Said(Box::new(answer));
        }
        let (data, text) = (answer.data(), answer.text());
        let word = match data.as_ref().map(|data| data["decision"].as_str().unwrap_or_default()) {
            Some(decision) => decision.to_owned(),
            None => text.trim().trim_end_matches(['.', '!']).to_lowercase(),
        };
        match word.as_str() {
            "allow-session" | "always" if self.for_session => Decision::AllowForSession,
            "yes" | "y" | "allow" => Decision::Allow,
            _ if text.trim().is_empty() => Decision::Deny("the client denied it".into()),
            _ => Decision::Deny(format!("the client denied it and says: {text}")),
        }
    }

    /// Whether its input names that file.
    pub(super) fn is_about(&self, file: &str) -> bool {
        let mut named = self.input.as_object().into_iter().flat_map(|input| input.values());
        named.any(|value| value.as_str() == Some(file))
    }

    fn request(&self, agent: &str) -> String {
        let command = match &self.input["command"] {
            Value::String(command) => Some(command.clone()),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                Some(words.join(" "))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        let what =
            command.or_else(|| self.description.clone()).unwrap_or_else(|| self.input.to_string());
        let place = self.directory.as_ref().map(|place| format!(" in {place}")).unwrap_or_default();
        format!("{agent} wants to use {}{place}:\n{what}\nAllow it? (yes or no)", self.tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_word_comes_before_the_clients() {
        use Kind::{Edit, Open, Read, Run};
        let yes = Some(Decision::Allow);
        for (permissions, kind, decided) in [
            (Permissions::Ask, Read, None),
            (Permissions::Ask, Run, None),
            (Permissions::ReadOnly, Read, None),
            // A key in the home directory is no part of the work.
            (Permissions::Edit, Read, None),
            (Permissions::Edit, Edit, yes.clone()),
            (Permissions::Edit, Run, None),
            (Permissions::Full, Run, yes),
            (Permissions::Full, Open, None),
        ] {
            assert_eq!(permissions.decide(kind), decided, "{permissions:?} {kind:?}");
        }
        for kind in [Edit, Run] {
            assert!(matches!(Permissions::ReadOnly.decide(kind), Some(Decision::Deny(_))));
        }
    }

    #[test]
    fn permission_to_edit_ends_at_the_directory() {
        for (path, below) in [
            ("/w/a", true),
            ("/w/a/..b", true),
            ("/w", false),
            ("/wider/a", false),
            ("/w/../etc/passwd", false),
            ("/w/..", false),
            ("a", false),
        ] {
            assert_eq!(is_below(path, "/w/"), below, "{path}");
        }
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let question = |for_session| Question {
            id: json!(1),
            kind: Kind::Run,
            tool: "Bash".into(),
            input: json!({ "command": ["rm", "-r", "x"] }),
            description: None,
            directory: Some("/w".into()),
            for_session,
        };
        let data = |word: &str| {
            Message::user(vec![Part::text("yes"), Part::data(&json!({ "decision": word }))])
        };
        for (answer, decision) in [
            ("Yes.".into(), Decision::Allow),
            (data("allow"), Decision::Allow),
            (data("allow-session"), Decision::AllowForSession),
            (data("deny"), Decision::Deny("the client denied it and says: yes".into())),
            ("".into(), Decision::Deny("the client denied it".into())),
            ("yes, but".into(), Decision::Deny("the client denied it and says: yes, but".into())),
        ] {
            assert_eq!(question(true).decision(answer), decision);
        }
        assert!(matches!(question(false).decision(data("allow-session")), Decision::Deny(_)));
        assert_eq!(
            question(true).prompt("Codex").text(),
            "Codex wants to use Bash in /w:\nrm -r x\nAllow it? (yes or no)"
        );
    }
}
