//! Text of an action for people.

use crate::text::{plain_text::line, shell::quoted_word};
use a2a_hub_protocol::permission::Action;

/// Maximum number of characters of a description.
const MAX_CHARS: usize = 2_000;

/// Describes an action in one plain line, without control and deceptive characters.
pub fn describe(action: &Action) -> String {
    let text = match action {
        Action::Run { commands, directory } => {
            let commands: Vec<_> = commands.iter().map(|words| command(words)).collect();
            format!("run {} in {directory}", commands.join(" && "))
        }
        Action::Edit { paths } => format!("change {}", paths.join(", ")),
        Action::Read { paths } => format!("read {}", paths.join(", ")),
        Action::Other { reason, .. } => format!("other: {reason}"),
    };
    line(&text, MAX_CHARS)
}

/// Command with quotes, as a person would type it.
pub(super) fn command(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted_word(word, "*")).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_described_in_line() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let commands = vec![words(&["git", "commit", "-m", "it's a"]), words(&["ls", ""])];
        let directory = "/w".to_owned();
        for (action, expected) in [
            (Action::Run { commands, directory }, r"run git commit -m 'it'\''s a' && ls '' in /w"),
            (Action::Edit { paths: words(&["/a", "/b"]) }, "change /a, /b"),
            (Action::Read { paths: words(&["/a\u{1b}[2J\n"]) }, "read /a[2J"),
            (Action::Other { reason: "a\u{202e}b".to_owned(), runs: true }, "other: ab"),
        ] {
            assert_eq!(describe(&action), expected);
        }
    }
}
