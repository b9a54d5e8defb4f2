//! Echoes each message; `stream <text>` echoes word by word.

use a2a_hub_sdk::prelude::*;

/// The smallest agent.
pub struct Echo;

impl Agent for Echo {
    fn card() -> Card {
        Card::new("echo", "Says back what it is told", env!("CARGO_PKG_VERSION"))
            .skill("echo", "Echo", "Says the text back", &["test"])
            .example("hello")
            .example("stream one word after the other")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let text = task.text();
        let Some(words) = text.strip_prefix("stream ") else { return ctx.done(text) };
        let mut stream = ctx.text_stream("echo");
        for word in words.split_inclusive(' ') {
            stream.push(word)?;
            stream.flush()?;
        }
        stream.finish(words)?;
        ctx.done(words)
    }
}
export!(Echo);

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::testing::ScriptedHost;

    use super::*;

    #[test]
    fn says_it_back() {
        let host = ScriptedHost::new();
        assert_eq!(host.run::<Echo>("hello").unwrap().text(), "hello");
        assert!(host.events().is_empty());
    }

    #[test]
    fn streams_word_by_word() {
        let host = ScriptedHost::new();
        assert_eq!(host.run::<Echo>("stream one two three").unwrap().text(), "one two three");
        assert_eq!(host.events().len(), 4);
        assert_eq!(host.artifact("echo").unwrap(), "one two three");
    }
}
