//! Renders the hub's JSON as text: helpers of several commands.

use a2a_hub_core::text::plain_text::line;
pub use a2a_hub_core::text::shell::shell_word;
use jiff::Timestamp;
use serde_json::Value;

/// Returns a JSON string's text, or an empty string for any other value.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a JSON array's elements, or none for any other value.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Number with its noun in English, such as `1 task` or `2 tasks`.
pub fn counted(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Returns the first line of a message that is not blank. Of data for a flow or a script, these are
/// the words that a person gave: the flow's text, and the script's command.
pub fn first_words(parts: &Value) -> String {
    let lines = list(parts).iter().map(|part| match request_words(&part["data"]) {
        Some(words) if part["kind"] == "data" => words,
        Some(_) | None => part_text(part),
    });
    let lines: Vec<_> = lines.collect();
    let mut lines = lines.iter().flat_map(|part| part.lines());
    lines.find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

/// Words of a request to run a flow file or a script; none of other data.
fn request_words(data: &Value) -> Option<String> {
    if data["do"] == "run" && data["flow"].is_string() {
        let input = || data.get("input").map(Value::to_string);
        return data["text"].as_str().map(str::to_owned).or_else(input);
    }
    let words: Option<Vec<_>> = data["run"].as_array()?.iter().map(Value::as_str).collect();
    words.map(|words| words.join(" "))
}

/// Renders the parts of a message or an artifact as text. Files and data get separate lines.
pub fn parts_text(parts: &Value) -> String {
    joined(parts, part_text)
}

fn joined(parts: &Value, render: impl Fn(&Value) -> String) -> String {
    list(parts).iter().fold(String::new(), |mut all, part| {
        if part["kind"] != "text" && !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(&render(part));
        all
    })
}

/// Renders a message as text. A question whose metadata says so has the same in its text and, for
/// programs, in its data.
pub fn message_text(message: &Value) -> String {
    question_words(message).unwrap_or_else(|| parts_text(&message["parts"]))
}

/// Renders a message for people who read it later: as [`message_text`], but JSON data as lines.
pub fn message_for_reading(message: &Value) -> String {
    let render = |part: &Value| match part["kind"] == "data" {
        true => data_lines(&part["data"], 0),
        false => part_text(part),
    };
    question_words(message).unwrap_or_else(|| joined(&message["parts"], render))
}

/// Text of a question; `None` if the message is none, or has data only.
fn question_words(message: &Value) -> Option<String> {
    message["metadata"]["question"].as_object()?;
    let parts = list(&message["parts"]).iter();
    let words: Vec<_> = parts.filter(|part| part["kind"] != "data").cloned().collect();
    Some(parts_text(&Value::Array(words))).filter(|words| !words.trim().is_empty())
}

/// Renders one part as a line of text; binary content is replaced by its name.
fn part_text(part: &Value) -> String {
    match part["kind"].as_str() {
        Some("text") => text(&part["text"]).to_owned(),
        Some("data") => format!("{}\n", part["data"]),
        Some("file") => file_text(&part["file"]),
        _ => String::new(),
    }
}

/// Maximum length, in characters, of the routing details of one agent.
const MAX_ROUTING: usize = 300;

/// Describes how a task without a named agent was routed: the chosen agent, and the reasons against
/// others.
pub fn routing_lines(routing: &Value) -> Vec<String> {
    if !routing.is_object() {
        return Vec::new();
    }
    let of = |name: &str| routing[name].as_str().map(|it| line(it, MAX_ROUTING));
    let criteria = [("named", "of"), ("skill", "with the skill"), ("version", "in version")];
    let criteria =
        criteria.into_iter().filter_map(|(name, word)| Some(format!(" {word} `{}`", of(name)?)));
    let criteria: String = criteria.collect();
    let balance = of("balance").unwrap_or_default();
    let chosen = of("agent").unwrap_or_default();
    let older = if routing["older"] == true { ", an older version" } else { "" };
    let mut lines = vec![format!("agent    {chosen}{older}: one{criteria}, by {balance}")];
    lines.extend(list(&routing["passedOver"]).iter().map(|it| {
        let [agent, why] = ["agent", "why"].map(|name| line(text(&it[name]), MAX_ROUTING));
        let task = it["task"].as_str().map(|id| format!(" (task {})", line(id, MAX_ROUTING)));
        format!("         not {agent}: {why}{}", task.unwrap_or_default())
    }));
    lines
}

/// Deepest level of JSON data that gets lines; deeper values are JSON.
const MAX_LEVELS: usize = 8;

/// Renders JSON data as lines: `name: value`, and `- ` before each element of a list.
fn data_lines(data: &Value, level: usize) -> String {
    let deeper = |value: &Value| match value {
        Value::Object(all) => !all.is_empty() && level < MAX_LEVELS,
        Value::Array(all) => !all.is_empty() && level < MAX_LEVELS,
        Value::String(text) => text.trim_end().contains('\n'),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    };
    let entry = |begin: String, value: &Value| match deeper(value) {
        false => format!("{begin} {}", data_lines(value, level + 1)),
        true => format!("{begin}\n{}", indented(&data_lines(value, level + 1))),
    };
    match data {
        Value::Object(all) if !all.is_empty() && level < MAX_LEVELS => {
            all.iter().map(|(name, value)| entry(format!("{name}:"), value)).collect()
        }
        Value::Array(all) if !all.is_empty() && level < MAX_LEVELS => {
            all.iter().map(|value| entry("-".to_owned(), value)).collect()
        }
        Value::String(text) => format!("{}\n", text.trim_end()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) | Value::Array(_) => {
            format!("{data}\n")
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Describes a file in one line: its name, and its size or URL.
fn file_text(file: &Value) -> String {
    let name = file["name"].as_str().unwrap_or("without a name");
    match (file["uri"].as_str(), file["bytes"].as_str()) {
        (Some(uri), _) => format!("[file {name}: {uri}]\n"),
        (None, Some(encoded)) => {
            let padding = encoded.bytes().rev().take_while(|byte| *byte == b'=').count();
            format!("[file {name}, {}]\n", size(encoded.len() / 4 * 3 - padding.min(2)))
        }
        (None, None) => format!("[file {name}]\n"),
    }
}

/// Formats a number of bytes.
pub fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => in_unit(bytes, 20, "MiB"),
        _ => in_unit(bytes, 30, "GiB"),
    }
}

/// Formats a number of bytes in units of two to the power of `bits`, to one decimal.
fn in_unit(bytes: usize, bits: u32, unit: &str) -> String {
    let tenth = ((bytes & ((1 << bits) - 1)) * 10) >> bits;
    format!("{}.{tenth} {unit}", bytes >> bits)
}

/// Formats a duration.
pub fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats the time since a timestamp: `5 min ago`, `3 days ago`.
pub fn ago(timestamp: &Value, now: Timestamp) -> String {
    let Ok(then) = text(timestamp).parse::<Timestamp>() else { return String::new() };
    match now.duration_since(then).as_secs() {
        ..5 => "now".to_owned(),
        seconds @ 5..60 => format!("{seconds} s ago"),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// Formats an optional past time: the time since then on a terminal, which has `columns`,
/// and the whole timestamp in a pipe.
pub fn past(timestamp: &Value, now: Timestamp, columns: Option<usize>) -> String {
    match timestamp.as_str() {
        None => "-".to_owned(),
        Some(_) if columns.is_some() => ago(timestamp, now),
        Some(full) => full.to_owned(),
    }
}

/// Formats the time until a timestamp: `in 40 s`; `now` if it is past.
pub fn ahead(timestamp: &Value, now: Timestamp) -> String {
    let then = text(timestamp).parse::<Timestamp>().unwrap_or(now);
    match u64::try_from(then.duration_since(now).as_secs()) {
        Ok(seconds @ 1..) => format!("in {}", duration(seconds)),
        _ => "now".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn past_timestamps_are_relative() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let told = [
            "2026-01-31T12:00:00.001Z",
            "2026-01-31T11:59:50Z",
            "2026-01-31T11:01:00Z",
            "2026-01-30T11:00:00Z",
            "2026-01-01T00:00:00Z",
            "soon",
        ];
        let told = told.map(|then| ago(&json!(then), now)).join(", ");
        insta::assert_snapshot!(told, @"now, 10 s ago, 59 min ago, 25 h ago, 30 days ago,");
    }

    #[test]
    fn future_timestamps_are_relative() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let told = ["2026-01-31T12:00:09.5Z", "2026-01-31T13:05:00Z", "2026-01-31T11:59:50Z", ""];
        let told = told.map(|then| ahead(&json!(then), now)).join(", ");
        insta::assert_snapshot!(told, @"in 9 s, in 1 h 5 min, now, now");
    }

    #[test]
    fn question_is_shown_without_data_for_programs() {
        let parts = json!([
            { "kind": "text", "text": "Allow it? (yes or no)" },
            { "kind": "data", "data": { "tool": "Bash" } },
        ]);
        assert_eq!(parts_text(&parts), "Allow it? (yes or no)\n{\"tool\":\"Bash\"}\n");
        let asked = json!({ "parts": parts, "metadata": { "question": { "kind": "permission" } } });
        assert_eq!(message_text(&asked), "Allow it? (yes or no)");
        let said = json!({ "parts": parts, "metadata": { "question": "q-1" } });
        assert_eq!(message_text(&said), parts_text(&parts), "an answer is no question");
        let bare = json!({ "parts": [parts[1]], "metadata": { "question": {} } });
        assert_eq!(message_text(&bare), "{\"tool\":\"Bash\"}\n");
    }

    #[test]
    fn routing_names_chosen_agent_and_others() {
        let routing = json!({ "agent": "codex", "skill": "review", "balance": "least-busy", "older": true,
            "passedOver": [{ "agent": "vibe", "why": "busy", "task": "t-1" }] });
        insta::assert_snapshot!(routing_lines(&routing).join("\n"), @"
        agent    codex, an older version: one with the skill `review`, by least-busy
                 not vibe: busy (task t-1)
        ");
        assert_eq!(routing_lines(&Value::Null), Vec::<String>::new());
    }

    #[test]
    fn data_is_shown_as_lines() {
        let data = json!({
            "do": "run", "flow": "a = 1\nb = 2\n", "none": null, "empty": {}, "list": [1, "two", { "x": [] }],
        });
        let parts = json!([{ "kind": "text", "text": "Do it" }, { "kind": "data", "data": data }]);
        insta::assert_snapshot!(message_for_reading(&json!({ "parts": parts })), @"
        Do it
        do: run
        empty: {}
        flow:
          a = 1
          b = 2
        list:
          - 1
          - two
          -
            x: []
        none: null
        ");
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let deep = message_for_reading(&json!({ "parts": [{ "kind": "data", "data": deep }] }));
        assert!(deep.lines().count() < 12 && deep.contains("[[[[["), "{deep}");
        let asked = json!({ "parts": parts, "metadata": { "question": {} } });
        assert_eq!(message_for_reading(&asked), "Do it");
    }

    #[test]
    fn first_words_are_those_of_person() {
        let data = |data: Value| json!({ "kind": "data", "data": data });
        let words = |text: &str| json!({ "kind": "text", "text": text });
        for (parts, shown) in [
            (json!([words("\n Review\nall")]), " Review"),
            (json!([words("Review"), words("What happened")]), "Review"),
            (json!([data(json!({ "do": "run", "flow": "x = 1", "text": "hi" }))]), "hi"),
            (json!([data(json!({ "do": "run", "flow": "x", "input": { "a": 1 } }))]), "{\"a\":1}"),
            (
                json!([data(json!({ "env": { "A": "b" }, "run": ["sh", "-c", "exit 1"] }))]),
                "sh -c exit 1",
            ),
            (json!([data(json!({ "run": 1 }))]), "{\"run\":1}"),
            (json!([]), ""),
        ] {
            assert_eq!(first_words(&parts), shown, "{parts}");
        }
    }

    #[test]
    fn binary_part_is_shown_by_name() {
        let file = |file: Value| json!({ "kind": "file", "file": file });
        let parts = json!([
            { "kind": "text", "text": "see\n" },
            { "kind": "data", "data": { "n": [1, null] } },
            file(json!({ "name": "a.bin", "bytes": "AP8=" })),
            file(json!({ "name": "b.bin", "bytes": "A".repeat(40_000) })),
            file(json!({ "bytes": "" })),
            file(json!({ "name": "a.png", "uri": "https://example.com/a.png" })),
        ]);
        insta::assert_snapshot!(parts_text(&parts), @r#"
        see
        {"n":[1,null]}
        [file a.bin, 2 bytes]
        [file b.bin, 29 KiB]
        [file without a name, 0 bytes]
        [file a.png: https://example.com/a.png]
        "#);
    }
}
