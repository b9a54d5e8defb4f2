//! Conversation so far, for the prompt of a program without a session: as much as fits.

use crate::{Message, Role, Task};

/// Size limit of the history in a new session's prompt: enough to go on, and small enough for the
/// work.
const HISTORY_BYTES: usize = 32 * 1024;

/// Smallest size of a shortened message; a shorter one would make no sense.
const WORTH_TELLING: usize = 1024;

/// Latest messages, oldest first, and the amount left out: the middle of the oldest message shown,
/// and all messages before it.
pub(super) fn history(task: &Task) -> String {
    let mut free_bytes = HISTORY_BYTES;
    let mut lines: Vec<String> = Vec::new();
    for message in task.history.iter().rev() {
        let line = line(message);
        let fits = line.len() <= free_bytes;
        if fits {
            free_bytes -= line.len();
            lines.push(line);
        } else if free_bytes >= WORTH_TELLING {
            lines.push(without_middle(&line, free_bytes));
        }
        if !fits {
            break;
        }
    }
    match task.history.len() - lines.len() {
        0 => {}
        1 => lines.push("[The message before is left out.]\n".to_owned()),
        omitted => lines.push(format!("[The {omitted} messages before are left out.]\n")),
    }
    lines.reverse();
    lines.concat()
}

fn line(message: &Message) -> String {
    let speaker = match message.role {
        Role::User => "user",
        Role::Agent => "you",
    };
    format!("{speaker}: {}\n", message.text())
}

/// Beginning and end of a text that is longer than `max_bytes`.
fn without_middle(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let begin = &text[..text.floor_char_boundary(max_bytes / 2)];
    let end = &text[text.ceil_char_boundary(text.len() - max_bytes / 2)..];
    let omitted = text.len() - begin.len() - end.len();
    format!("{begin}\n[{omitted} bytes are left out here.]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;
    use crate::testing::task;

    fn said(texts: &[String]) -> Task {
        Task { history: texts.iter().map(|text| message(text)).collect(), ..task("go on") }
    }

    fn message(text: &str) -> Message {
        Message::user(vec![Part::text(text)])
    }

    #[test]
    fn short_history_is_complete() {
        assert_eq!(history(&said(&[])), "");
        let mut task = said(&["one".into(), "two".into()]);
        task.history[1].role = Role::Agent;
        assert_eq!(history(&task), "user: one\nyou: two\n");
    }

    #[test]
    fn long_message_loses_middle_and_predecessors() {
        let long = format!("begin {} end", "ä".repeat(HISTORY_BYTES));
        let told = history(&said(&["a".into(), "b".into(), long.clone(), "newest".into()]));
        assert!(told.starts_with("[The 2 messages before are left out.]\nuser: begin ä"), "{told}");
        assert!(told.contains("\n[32800 bytes are left out here.]\nä"));
        assert!(told.ends_with("ä end\nuser: newest\n"), "{}", &told[told.len() - 40..]);
        assert!(told.len() < HISTORY_BYTES + 200);

        let told = history(&said(&[long]));
        assert!(
            told.starts_with("user: begin") && told.ends_with(" end\n"),
            "the only one is told"
        );
    }

    #[test]
    fn tiny_rest_of_message_is_omitted() {
        let nearly = "x".repeat(HISTORY_BYTES - WORTH_TELLING);
        let told = history(&said(&["y".repeat(2000), nearly]));
        assert!(
            told.starts_with("[The message before is left out.]\nuser: xxx"),
            "{}",
            &told[..60]
        );
    }
}
