//! Options of `send` that become message metadata: the model, the effort, the session and free-form
//! entries.

use clap::Args;
use serde_json::{Map, Value, json};

/// Metadata keys that `--metadata` refuses, each with the option to use instead.
const OTHERS: [(&str, &str); 6] = [
    ("targetAgent", "name the agent before the message"),
    ("workingDirectory", "use `--cwd`"),
    ("additionalDirectories", "use `--add-dir`"),
    ("question", "use `--question`"),
    ("resume", "use `--resume`"),
    ("", "the key is empty"),
];

/// Help heading of the options that continue a conversation.
pub(super) const CONVERSATION: &str = "Conversation";

/// Help heading of the options that become metadata of the message.
const MODEL: &str = "Model and metadata";

/// Options of one message that become its metadata.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MessageOptions {
    /// Model, by its vendor's name
    #[arg(long, value_name = "NAME", help_heading = MODEL)]
    model: Option<String>,
    /// Reasoning effort of the model, in its vendor's terms, such as `low` or `high`
    #[arg(long, value_name = "LEVEL", help_heading = MODEL)]
    effort: Option<String>,
    /// Entry of the message's metadata; VALUE is JSON, or else text. May be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = MODEL)]
    metadata: Vec<(String, Value)>,
    /// Limits of the task together with its child tasks, such as `tasks=3,usd=0.5`; also `tokens`
    /// and `depth`
    #[arg(
        long,
        value_name = "LIMIT=COUNT",
        value_delimiter = ',',
        value_parser = limit,
        help_heading = MODEL
    )]
    budget: Vec<(String, Value)>,
    /// Continue this session of the agent's own program, which was run by hand
    #[arg(
        long,
        value_name = "ID",
        help_heading = CONVERSATION,
        conflicts_with_all = ["context", "go_on", "task"]
    )]
    resume: Option<String>,
}

impl MessageOptions {
    /// Returns the options as members of a message's metadata.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        let mut metadata: Map<_, _> = self.metadata.iter().cloned().collect();
        for (name, chosen) in
            [("model", &self.model), ("effort", &self.effort), ("resume", &self.resume)]
        {
            if let Some(chosen) = chosen {
                metadata.insert(name.to_owned(), json!(chosen));
            }
        }
        if !self.budget.is_empty() {
            let limits: Map<_, _> = self.budget.iter().cloned().collect();
            metadata.insert("budget".to_owned(), Value::Object(limits));
        }
        metadata
    }
}

/// Parses a limit of a budget to a member of `metadata.budget`.
fn limit(text: &str) -> Result<(String, Value), String> {
    let why = || {
        format!(
            "`{text}` is not a limit: give one such as tasks=3, tokens=20000, usd=0.5 or depth=2"
        )
    };
    let (name, count) = text.split_once('=').ok_or_else(why)?;
    match name {
        "depth" | "tasks" | "tokens" => {
            let count: u64 = count.parse().map_err(|_| why())?;
            Ok((name.to_owned(), json!(count)))
        }
        "usd" => {
            let usd = count.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd >= 0.0);
            Ok(("costUsd".to_owned(), json!(usd.ok_or_else(why)?)))
        }
        _ => Err(why()),
    }
}

/// Parses `KEY=VALUE`; the value is JSON, or else text.
pub(super) fn pair(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    if let Some((_, way_out)) = OTHERS.iter().find(|(other, _)| *other == key) {
        return Err(format!("`{key}` cannot be set by `--metadata`: {way_out}"));
    }
    Ok((key.to_owned(), json_or_text(value)))
}

/// Parses `KEY=VALUE` with any key, since an author names the inputs; the value is JSON, or else
/// text.
pub(in crate::commands) fn input_pair(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), json_or_text(value)))
}

fn json_or_text(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        chosen: MessageOptions,
        #[arg(long)]
        context: Option<String>,
        #[arg(long)]
        go_on: bool,
        #[arg(long)]
        task: Option<String>,
    }

    fn metadata(args: &[&str]) -> Result<Value, String> {
        let line = Line::try_parse_from([&["send"], args].concat());
        line.map(|line| line.chosen.metadata().into()).map_err(|why| why.to_string())
    }

    #[test]
    fn options_become_message_metadata() {
        let all = ["--model", "m", "--effort", "low", "--resume", "s", "--metadata", "a=1"];
        let more = ["--metadata", "b=x=y", "--metadata", "allowedTools=[\"Bash\"]"];
        let told = metadata(&[&all[..], &more[..]].concat()).unwrap();
        let expected = json!({ "a": 1, "b": "x=y", "allowedTools": ["Bash"],
            "model": "m", "effort": "low", "resume": "s" });
        assert_eq!(told, expected);
        assert_eq!(
            metadata(&["--metadata", "model=a", "--model", "b"]).unwrap(),
            json!({ "model": "b" })
        );
        assert_eq!(metadata(&[]).unwrap(), json!({}));
    }

    #[test]
    fn reserved_metadata_keys_are_refused() {
        for (args, why) in [
            (["--metadata", "targetAgent=x"], "name the agent before the message"),
            (["--metadata", "resume=x"], "use `--resume`"),
            (["--metadata", "x"], "write it as KEY=VALUE"),
            (["--metadata", "=x"], "the key is empty"),
        ] {
            let refused = metadata(&args).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(
            metadata(&["--resume", "s", "--task", "t"]).unwrap_err().contains("cannot be used")
        );
    }

    #[test]
    fn budget_becomes_metadata_member() {
        let line =
            Line::try_parse_from(["send", "--budget", "tasks=1,usd=0.5", "--budget=depth=2"]);
        let metadata = line.ok().unwrap().chosen.metadata();
        assert_eq!(metadata["budget"], json!({ "tasks": 1, "costUsd": 0.5, "depth": 2 }));
        for wrong in ["tasks", "tasks=-1", "usd=NaN", "euro=1", "tokens=1.5", ""] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
