//! `publish` and `topic`: agents and people tell each other what happened.

use a2a_hub_protocol::topics::{MAX_BODY, MAX_WAIT_MS};
use a2a_hub_socket_client::{
    exit::Exit,
    failure::CommandError,
    global::{Format, Global},
    hub_client::{Client, ask},
    runtime::block_on,
};
use a2a_hub_terminal::{
    render::{list, past, shell_word, size, text},
    table::Table,
    text::{FAINT, Text},
};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _, Read};

/// Most messages of one request.
const PAGE: u64 = 100;

/// Arguments of `publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Topic, such as builds/main/failed
    topic: String,
    /// Text of the message [default: standard input]
    text: Option<String>,
    /// Publish JSON in place of text
    #[arg(long)]
    data: bool,
}

/// Commands of `topic`.
#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// List the topics with their sizes, and the named cursors
    List,
    /// Print the messages of topics as they are published
    Tail(Tail),
    /// Publish a message to a topic, for agents and people who subscribe to it
    Publish(Publish),
    /// Delete a topic with its messages, or a named cursor
    Delete {
        /// Topic
        #[arg(required_unless_present = "cursor")]
        topic: Option<String>,
        /// Cursor, in place of a topic
        #[arg(long, value_name = "NAME", conflicts_with = "topic")]
        cursor: Option<String>,
    },
}

/// Arguments of `topic tail`.
#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// Topics: `+` stands for one level, a last `#` for all below, as in builds/+/failed
    pattern: String,
    /// Begin after this position; `--format json` prints the positions
    #[arg(long, value_name = "POSITION", conflicts_with = "from_start")]
    after: Option<u64>,
    /// Begin with the oldest stored message [default: only new messages]
    #[arg(long)]
    from_start: bool,
    /// Go on where the cursor of this name is, which the hub stores
    #[arg(long = "as", value_name = "NAME")]
    cursor: Option<String>,
    /// End after this number of messages
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End once the stored messages are printed
    #[arg(long)]
    no_wait: bool,
}

/// Publishes a message.
///
/// # Errors
///
/// The message cannot be read, or the hub cannot be reached or refuses.
pub(crate) fn publish(global: &Global, publish: &Publish) -> anyhow::Result<Exit> {
    let topic = &publish.topic;
    let body = match &publish.text {
        Some(text) => text.clone(),
        None if io::stdin().is_terminal() => {
            let why = format!(
                "publish to `{topic}`: the message is missing; write it after the topic, or pipe it in"
            );
            bail!(CommandError::usage(why));
        }
        None => piped(topic, io::stdin().lock())?,
    };
    let body = if publish.data {
        let data: Value = serde_json::from_str(&body).map_err(|why| {
            CommandError::usage(format!("publish to `{topic}`: the message is no JSON: {why}"))
        })?;
        if let Some(number) = inexact_integer(&body) {
            bail!(CommandError::usage(format!(
                "publish to `{topic}`: the integer {number} has more than 64 bits, and would lose digits; write it as a text"
            )));
        }
        json!({ "topic": topic, "data": data })
    } else {
        json!({ "topic": topic, "text": body })
    };
    let stored = ask(global, "hub/topics/publish", body)?;
    global.show(&stored, || {
        Ok(format!("published {} #{}\n", text(&stored["topic"]), stored["sequence"]).into())
    })?;
    Ok(Exit::Done)
}

/// First integer of a JSON text that 64 bits do not hold (RFC 8259, section 6).
fn inexact_integer(json: &str) -> Option<&str> {
    let (mut rest, mut is_text) = (json, false);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\\' if is_text => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '"' => {
                is_text = !is_text;
                1
            }
            '-' | '0'..='9' if !is_text => {
                let end =
                    rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
                let number = &rest[..end.unwrap_or(rest.len())];
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                number.len()
            }
            other => other.len_utf8(),
        };
        rest = &rest[length..];
    }
    None
}

/// Reads a message, without the line end that `echo` adds. Larger ones are refused before they are
/// read as a whole.
fn piped(topic: &str, from: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_BODY as u64 + 1;
    from.take(limit + 1).read_to_end(&mut bytes).context("read the message from standard input")?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    if bytes.len() > MAX_BODY {
        let why = format!(
            "publish to `{topic}`: the message has more than {MAX_BODY} bytes; publish the path of a file in its place"
        );
        bail!(CommandError::usage(why));
    }
    String::from_utf8(bytes).map_err(|_| {
        CommandError::usage(format!("publish to `{topic}`: the message is no UTF-8")).into()
    })
}

/// Carries out a command.
///
/// # Errors
///
/// The hub cannot be reached, or refuses.
pub(crate) fn topic(global: &Global, command: &TopicCommand) -> anyhow::Result<Exit> {
    match command {
        TopicCommand::List => {
            let answer = ask(global, "hub/topics/list", json!({}))?;
            let shown = topics_text(&answer, Timestamp::now(), global.console().columns());
            global.show(&answer, || Ok(shown))?;
        }
        TopicCommand::Tail(tail) => block_on(follow(global, tail))?,
        TopicCommand::Publish(args) => return publish(global, args),
        TopicCommand::Delete { topic, cursor } => {
            let params = match (topic, cursor) {
                (Some(topic), _) => json!({ "topic": topic }),
                (None, cursor) => json!({ "cursor": cursor }),
            };
            let answer = ask(global, "hub/topics/delete", params)?;
            let name = topic.as_ref().or(cursor.as_ref()).cloned().unwrap_or_default();
            global.show(&answer, || Ok(format!("deleted `{name}`\n").into()))?;
        }
    }
    Ok(Exit::Done)
}

/// Prints messages until enough are printed.
async fn follow(global: &Global, tail: &Tail) -> anyhow::Result<()> {
    let mut client = Client::connect(global).await?;
    let (mut after, mut remaining) = (tail.after, tail.count);
    loop {
        let limit = remaining.map_or(PAGE, |remaining| remaining.min(PAGE));
        let params = |after: Option<u64>, limit: u64, wait_ms: u64| {
            json!({
                "pattern": tail.pattern, "after": after, "cursor": tail.cursor, "limit": limit,
                "start": if tail.from_start { "stored" } else { "new" }, "waitMs": wait_ms,
            })
        };
        let wait_ms = if tail.no_wait { 0 } else { MAX_WAIT_MS };
        let page = client.call("hub/topics/read", params(after, limit, wait_ms)).await?;
        let messages = list(&page["messages"]);
        for gap in list(&page["gaps"]) {
            match global.format {
                Format::Json => global.console().print_json(&json!({ "gap": gap }))?,
                Format::Pretty => global.console().note(gap_text(gap, &tail.pattern)),
            }
        }
        for message in messages {
            match global.format {
                Format::Json => global.console().print_json(message)?,
                Format::Pretty => global.console().print(&entry(message))?,
            }
        }
        after = page["next"].as_u64().or(after);
        remaining = remaining.map(|left| left.saturating_sub(messages.len() as u64));
        let is_drained = tail.no_wait && messages.is_empty();
        if remaining == Some(0) || is_drained {
            if tail.cursor.is_some() {
                // It confirms what was printed; the messages of the answer are for the next time.
                client.call("hub/topics/read", params(after, 1, 0)).await?;
            }
            return Ok(());
        }
    }
}

/// Message for people: a line of the hub, and below it the publisher's text, indented so that it
/// cannot imitate such a line.
fn entry(message: &Value) -> Text {
    let task = message["taskId"].as_str().map(|task| format!(" (task {})", shell_word(task)));
    let by = format!("{}{}", text(&message["publisher"]), task.unwrap_or_default());
    let head = format!("{} #{}", text(&message["topic"]), message["sequence"]);
    let mut entry = Text::from(head);
    entry.append(Text::styled(FAINT, format!("  {}  {by}\n", text(&message["time"]))));
    let body = match message["text"].as_str() {
        Some(body) => body.to_owned(),
        None => message["data"].to_string(),
    };
    for line in body.split(is_line_end) {
        entry.append(format!("    {line}\n").into());
    }
    entry
}

/// Characters at which a terminal or a pager may begin a line.
fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn gap_text(gap: &Value, pattern: &str) -> String {
    match gap["topic"].as_str() {
        Some(topic) => format!(
            "warning: messages of {topic} up to #{} were dropped before they were read; `[topics]` in the configuration sets how \
             many are kept",
            gap["through"]
        ),
        None => format!(
            "warning: topics were removed whose messages were not read; {} may have matched them",
            shell_word(pattern)
        ),
    }
}

/// Renders topics and cursors as two tables.
fn topics_text(answer: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let (topics, cursors) = (list(&answer["topics"]), list(&answer["cursors"]));
    let mut shown = Text::new();
    if topics.is_empty() {
        shown.append("There are no topics; `a2a-hub publish TOPIC TEXT` makes one.\n".into());
    } else {
        let mut table = Table::new(["TOPIC", "OWNER", "MESSAGES", "SIZE", "LATEST", "DROPPED"]);
        for topic in topics {
            let bytes = topic["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
            let latest = past(&topic["latest"], now, columns);
            table.row([
                text(&topic["topic"]).into(),
                text(&topic["owner"]).into(),
                topic["messages"].to_string().into(),
                size(bytes.unwrap_or_default()).into(),
                format!("#{}, {latest}", topic["sequence"]).into(),
                topic["dropped"]
                    .as_u64()
                    .filter(|it| *it > 0)
                    .map_or_else(|| "-".into(), |dropped| format!("up to #{dropped}").into()),
            ]);
        }
        shown.append(table.text(columns));
    }
    if !cursors.is_empty() {
        let mut table = Table::new(["CURSOR", "OWNER", "PATTERN", "POSITION", "BEHIND", "USED"]);
        for cursor in cursors {
            table.row([
                text(&cursor["cursor"]).into(),
                text(&cursor["owner"]).into(),
                text(&cursor["pattern"]).into(),
                cursor["position"].to_string().into(),
                cursor["behind"].to_string().into(),
                past(&cursor["used"], now, columns).into(),
            ]);
        }
        shown.append("\n".into());
        shown.append(table.text(columns));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_integers_are_inexact() {
        for (json, wanted) in [
            (r#"{"n":12345678901234567890123}"#, Some("12345678901234567890123")),
            ("[18446744073709551616]", Some("18446744073709551616")),
            ("-9223372036854775809", Some("-9223372036854775809")),
            (r#"{"12345678901234567890123":"12345678901234567890123 \" 1"}"#, None),
            ("[18446744073709551615, -9223372036854775808, 1e400, 1.5]", None),
        ] {
            assert_eq!(inexact_integer(json), wanted, "{json}");
        }
    }

    #[test]
    fn tables_show_topics_and_cursors() {
        let now = "2026-06-02T00:00:00Z".parse().unwrap();
        let time = "2026-06-01T03:00:00.000Z";
        let answer = json!({
            "topics": [
                { "topic": "builds/main", "owner": "agent:codex", "messages": 3, "bytes": 2_048, "sequence": 9, "dropped": 6, "latest": time },
                { "topic": "chat", "owner": "operator", "messages": 1, "bytes": 5, "sequence": 1, "dropped": 0, "latest": time },
            ],
            "cursors": [
                { "cursor": "bot", "owner": "agent:codex", "pattern": "#", "position": 7, "behind": 3, "used": time },
            ],
        });
        insta::assert_snapshot!(topics_text(&answer, now, Some(100)).words(), @"
        TOPIC        OWNER        MESSAGES  SIZE        LATEST        DROPPED
        builds/main  agent:codex  3         2048 bytes  #9, 21 h ago  up to #6
        chat         operator     1         5 bytes     #1, 21 h ago  -

        CURSOR  OWNER        PATTERN  POSITION  BEHIND  USED
        bot     agent:codex  #        7         3       21 h ago
        ");
        let none = json!({ "topics": [], "cursors": [] });
        assert!(topics_text(&none, now, None).words().contains("a2a-hub publish"));
    }

    #[test]
    fn message_cannot_imitate_next_one() {
        let message = json!({ "topic": "a/b", "sequence": 2, "position": 9, "time": "T", "publisher": "agent:x",
            "taskId": "t1", "text": "one\n\nadmin #3  T  operator\u{2028}two\u{1b}[2J" });
        let data = json!({ "topic": "a", "sequence": 1, "time": "T", "publisher": "operator", "data": { "a": "\n" } });
        let shown = format!("{}{}", entry(&message).words(), entry(&data).words());
        let shown = shown.replace('\u{1b}', "ESC");
        insta::assert_snapshot!(shown, @r#"
        a/b #2  T  agent:x (task t1)
            one
            
            admin #3  T  operator
            twoESC[2J
        a #1  T  operator
            {"a":"\n"}
        "#);
        let look = a2a_hub_terminal::text::RenderOptions { cleaned: true, coloured: false };
        assert!(!entry(&message).render(look).contains('\u{1b}'));
    }

    #[test]
    fn piped_message_is_bounded() {
        assert_eq!(piped("a", &b"one\ntwo\n"[..]).unwrap(), "one\ntwo");
        assert_eq!(piped("a", &b""[..]).unwrap(), "");
        let most = "x".repeat(MAX_BODY);
        assert_eq!(piped("a", format!("{most}\n").as_bytes()).unwrap(), most);
        let endless = io::repeat(b'x');
        assert!(piped("a", endless).unwrap_err().to_string().contains("more than 262144 bytes"));
        assert!(piped("a", &b"\xff"[..]).unwrap_err().to_string().contains("no UTF-8"));
    }

    #[test]
    fn gap_names_topic_and_setting() {
        let gap = gap_text(&json!({ "topic": "a/b", "through": 7 }), "a/#");
        assert!(gap.starts_with("warning: messages of a/b up to #7 were dropped"), "{gap}");
        assert!(gap_text(&json!({}), "a/#").contains("'a/#' may have matched"));
    }
}
