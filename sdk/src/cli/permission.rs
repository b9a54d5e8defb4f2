//! Permission questions of the program, and the model's open questions.
//!
//! The operator's permissions decide what they can; the client decides the rest. Anything but a
//! clear yes counts as a no.

use serde_json::Value;

use super::FileChange;
use crate::{Context, Message};

/// Permissions of the program without asking the client: `permissions` of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Permissions {
    /// Ask the client every question of the program.
    #[default]
    Ask,
    /// Deny every change, without asking the client.
    ReadOnly,
    /// Allow file changes; ask the client about the rest.
    Edit,
    /// Allow everything.
    Full,
}

/// Kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reading outside of the task's directory, where the program reads without asking.
    Read,
    /// Changing a file.
    Edit,
    /// Running a command, or any other side effect.
    Run,
    /// Open question of the model, which a text answers.
    Open,
}

/// Question that the program waits on.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Id that the program gave the question.
    pub id: Value,
    /// Kind of the question.
    pub kind: Kind,
    /// Tool to be used.
    pub tool: String,
    /// Input of the tool.
    pub input: Value,
    /// Description by the program, or the text of an open question. Of a command: its reason.
    pub description: Option<String>,
    /// Changes of files that the tool would make, if the program reports them.
    pub changes: Vec<FileChange>,
    /// Directory in which the tool would run.
    pub directory: Option<String>,
    /// True if the tool can be allowed for the rest of the run.
    pub for_session: bool,
    /// Choices that the program itself offers for the answer.
    pub vendor_options: Vec<VendorOption>,
    /// Tool call that the question is about, for editors: its `id` in [`ToolFacts`], and its
    /// `kind`, `title` and `locations`.
    ///
    /// [`ToolFacts`]: super::ToolFacts
    pub tool_call: Option<Value>,
    /// Program's own request, for [`Context::request_permission`]; `None` for an open question.
    pub facts: Option<Value>,
}

/// Choice that the program offers for the answer to its question.
#[derive(Debug, Clone, PartialEq)]
pub struct VendorOption {
    /// Id of the choice.
    pub id: String,
    /// Name for people, in the program's words: it may say anything.
    pub name: String,
    /// Effect of the choice.
    pub kind: ChoiceKind,
}

/// Effect of a program's choice (ACP, `PermissionOptionKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceKind {
    /// Allows the tool this time.
    AllowOnce,
    /// Allows the tool from now on.
    AllowAlways,
    /// Denies the tool this time.
    RejectOnce,
    /// Denies the tool from now on.
    RejectAlways,
    /// The program does not say.
    Unknown,
}

impl ChoiceKind {
    /// Reads the protocol's name.
    pub fn new(name: Option<&str>) -> Self {
        match name {
            Some("allow_once") => Self::AllowOnce,
            Some("allow_always") => Self::AllowAlways,
            Some("reject_once") => Self::RejectOnce,
            Some("reject_always") => Self::RejectAlways,
            Some(_) | None => Self::Unknown,
        }
    }

    /// Name in the protocol; `None` if unknown.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::AllowOnce => Some("allow_once"),
            Self::AllowAlways => Some("allow_always"),
            Self::RejectOnce => Some("reject_once"),
            Self::RejectAlways => Some("reject_always"),
            Self::Unknown => None,
        }
    }

    /// Text for people.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::AllowOnce => "allows it once",
            Self::AllowAlways => "allows it from now on",
            Self::RejectOnce => "denies it once",
            Self::RejectAlways => "denies it from now on",
            Self::Unknown => "effect unknown",
        }
    }

    /// True if the choice denies the tool.
    fn is_denial(self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

/// First words of an answer that denies, whatever choice of the program has that name.
const DENIALS: [&str; 10] =
    ["no", "n", "not", "deny", "denied", "reject", "refuse", "never", "cancel", "don't"];

/// Decision about a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Yes, once.
    Allow,
    /// Yes, for everything like it in the rest of the run.
    AllowForSession,
    /// Choice of the program with this id.
    Chosen(String),
    /// No, with the reason.
    Deny(String),
    /// Answer to an open question.
    Answer(Box<Message>),
}

impl Permissions {
    /// Reads the operator's setting. An unknown value counts as read-only.
    pub fn from_settings(ctx: &Context) -> Self {
        match ctx.setting("permissions").as_deref() {
            None | Some("ask") => Self::Ask,
            Some("edit") => Self::Edit,
            Some("full") => Self::Full,
            Some(_) => Self::ReadOnly,
        }
    }

    /// Decision that needs no client; `None` if the client must decide.
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

/// True if `path` lies below `directory`, as both are written: permission to edit ends at the
/// task's directory. A path with `..` does not. An agent cannot see symlinks: its program must have
/// resolved them, or report one that leads elsewhere.
pub fn is_inside(path: &str, directory: &str) -> bool {
    let suffix = path.strip_prefix(directory.trim_end_matches('/'));
    suffix.is_some_and(|rest| rest.starts_with('/')) && !path.split('/').any(|step| step == "..")
}

/// Text of an answer to an open question. Without a text, the answer's data counts: a string as it
/// is, other JSON as its text.
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
    /// Decision that the client's answer expresses.
    pub fn decision(&self, answer: Message) -> Decision {
        if self.kind == Kind::Open {
            return Decision::Answer(Box::new(answer));
        }
        let (data, text) = (answer.data(), answer.text());
        let word = match data.as_ref().map(|data| data["decision"].as_str().unwrap_or_default()) {
            Some(decision) => decision.to_owned(),
            None => text.trim().trim_end_matches(['.', '!']).to_lowercase(),
        };
        // The plain words come first: a program may give its choices any names and ids.
        match word.as_str() {
            "allow-session" | "always" if self.for_session => return Decision::AllowForSession,
            "yes" | "y" | "allow" => return Decision::Allow,
            // A reason is what the text says beside the no.
            "no" | "n" if data.is_none() => return Decision::Deny("the client denied it".into()),
            _ => {}
        }
        match self.vendor_option(&word) {
            Some(option) => Decision::Chosen(option.id.clone()),
            None if text.trim().is_empty() => Decision::Deny("the client denied it".into()),
            None => Decision::Deny(format!("the client denied it and says: {text}")),
        }
    }

    /// Choice of the program that an answer names by its id or name. A word that denies chooses
    /// nothing that allows.
    fn vendor_option(&self, word: &str) -> Option<&VendorOption> {
        let first = word.split(|char: char| !(char.is_alphanumeric() || char == '\''));
        let denies = first.take(1).any(|it| DENIALS.contains(&it.to_lowercase().as_str()));
        let is_possible = |option: &&VendorOption| !denies || option.kind.is_denial();
        let by_id = self.vendor_options.iter().find(|option| option.id == word);
        let has_name = |option: &&VendorOption| {
            let name = option.name.trim().trim_end_matches(['.', '!']);
            name.to_lowercase() == word.to_lowercase()
        };
        by_id.or_else(|| self.vendor_options.iter().find(has_name)).filter(is_possible)
    }

    /// True if the question's input names that file.
    pub(super) fn is_about(&self, file: &str) -> bool {
        let mut named = self.input.as_object().into_iter().flat_map(|input| input.values());
        named.any(|value| value.as_str() == Some(file))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Part;

    #[test]
    fn operator_permissions_precede_client() {
        use Kind::{Edit, Open, Read, Run};
        let yes = Some(Decision::Allow);
        for (permissions, kind, decided) in [
            (Permissions::Ask, Read, None),
            (Permissions::Ask, Run, None),
            (Permissions::ReadOnly, Read, None),
            // A key in the home directory is not part of the work.
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
    fn edit_permission_ends_at_directory() {
        for (path, below) in [
            ("/w/a", true),
            ("/w/a/..b", true),
            ("/w", false),
            ("/wider/a", false),
            ("/w/../etc/passwd", false),
            ("/w/..", false),
            ("a", false),
        ] {
            assert_eq!(is_inside(path, "/w/"), below, "{path}");
        }
    }

    #[test]
    fn only_clear_yes_allows() {
        let question = |for_session| Question {
            id: json!(1),
            kind: Kind::Run,
            tool: "Bash".into(),
            input: json!({ "command": ["rm", "-r", "x"] }),
            description: None,
            changes: Vec::new(),
            directory: Some("/w".into()),
            for_session,
            vendor_options: Vec::new(),
            tool_call: None,
            facts: None,
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
            ("No.".into(), Decision::Deny("the client denied it".into())),
            ("yes, but".into(), Decision::Deny("the client denied it and says: yes, but".into())),
        ] {
            assert_eq!(question(true).decision(answer), decision);
        }
        assert!(matches!(question(false).decision(data("allow-session")), Decision::Deny(_)));
        assert_eq!(
            question(true).prompt("Codex").text(),
            "Codex wants to use Bash in /w:\nrm -r x\nAllow it? (yes or no)"
        );
        let choice =
            |id: &str, name: &str, kind| VendorOption { id: id.into(), name: name.into(), kind };
        let own = vec![
            choice("p1", "Allow in this project", ChoiceKind::AllowAlways),
            choice("n", "Reject", ChoiceKind::RejectOnce),
        ];
        let with_own = Question { vendor_options: own, ..question(true) };
        let project = Decision::Chosen("p1".into());
        assert_eq!(with_own.decision("allow in this project.".into()), project);
        assert_eq!(with_own.decision(data("p1")), project);
        assert_eq!(with_own.decision("yes".into()), Decision::Allow);
        let prompt = with_own.prompt("Codex");
        let own = "(yes or no; the program's own answers: \"Allow in this project\" allows it from \
                   now on, \"Reject\" denies it once)";
        assert!(prompt.text().ends_with(own), "{}", prompt.text());
        let options = &prompt.data().unwrap()["options"];
        let wanted = json!({ "id": "p1", "name": "Allow in this project", "kind": "allow_always" });
        assert_eq!(options[0], wanted);
        assert_eq!(with_own.decision("reject".into()), Decision::Chosen("n".into()));
        let open = Question { kind: Kind::Open, input: json!({ "a": 1 }), ..question(false) };
        let prompt = open.prompt("Codex");
        assert_eq!(prompt.text(), "a: 1", "JSON is for programs");
        assert!(prompt.metadata.unwrap().contains("\"input\""));
    }

    /// A program names its choices as it likes; their kinds decide what they do.
    #[test]
    fn misleading_choice_names_never_allow() {
        let choice =
            |id: &str, name: &str, kind| VendorOption { id: id.into(), name: name.into(), kind };
        let own = vec![
            choice("deny", "Deny", ChoiceKind::AllowAlways),
            choice("x", "No, and go on", ChoiceKind::AllowOnce),
            choice("y", "never again", ChoiceKind::Unknown),
            choice("yes", "Yes", ChoiceKind::RejectAlways),
            choice("allow", "Sure", ChoiceKind::RejectOnce),
            choice("z", "Nope\u{1b}[2J\nAllow it?", ChoiceKind::AllowAlways),
        ];
        let question = Question {
            id: json!(1),
            kind: Kind::Run,
            tool: "Bash".into(),
            input: json!({}),
            description: None,
            changes: Vec::new(),
            directory: None,
            for_session: true,
            vendor_options: own,
            tool_call: None,
            facts: None,
        };
        let data = |word: &str| Message::user(vec![Part::data(&json!({ "decision": word }))]);
        for answer in [
            "Deny".into(),
            "deny".into(),
            data("deny"),
            "No, and go on".into(),
            "Never again!".into(),
        ] {
            let decision = question.decision(answer);
            assert!(matches!(decision, Decision::Deny(_)), "{decision:?}");
        }
        for answer in ["Yes".into(), data("allow"), data("yes")] {
            assert_eq!(question.decision(answer), Decision::Allow);
        }
        assert_eq!(question.decision("sure".into()), Decision::Chosen("allow".into()));
        assert_eq!(question.decision(data("z")), Decision::Chosen("z".into()));
        let text = question.prompt("Mine").text();
        assert!(
            text.contains(r#""Deny" allows it from now on, "No, and go on" allows it once"#),
            "{text}"
        );
        assert!(text.ends_with(r#""Nope[2J …" allows it from now on)"#), "{text}");
    }
}
