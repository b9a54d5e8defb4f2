//! Notebook agent: stores notes across restarts, and repeats them. Its operator grants it memory
//! with `agents.notebook.grant.memory = true`.

use a2a_hub_sdk::prelude::*;

/// Prefix of the notes' keys in the agent's memory.
const NOTES: &str = "note/";

/// Agent that keeps notes.
pub struct Notebook;

impl Agent for Notebook {
    fn card() -> Card {
        Card::new("Notebook", "Keeps notes", env!("CARGO_PKG_VERSION"))
            .skill(
                "keep",
                "Keep a note",
                "Keeps a sentence until it is told to forget all",
                &["notes"],
            )
            .example("note buy milk")
            .example("notes")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let said = task.text();
        match said.split_once(' ') {
            Some(("note", note)) => keep(ctx, note),
            _ if said == "note" => keep(ctx, &ctx.ask("What is to be kept?")?.text()),
            _ if said == "notes" => tell(ctx),
            _ => ctx.reject("I know `note WORDS` and `notes`."),
        }
    }
}
export!(Notebook, manifest = "../manifest.toml");

fn keep(ctx: &Context, note: &str) -> Run {
    let number = ctx.remembered(NOTES)?.len() + 1;
    ctx.remember(&format!("{NOTES}{number:06}"), note)?;
    ctx.done(format!("That makes {number}."))
}

fn tell(ctx: &Context) -> Run {
    let mut notes = ctx.text_stream("notes");
    let mut all = String::new();
    for key in ctx.remembered(NOTES)? {
        let line = format!("- {}\n", ctx.recall::<String>(&key)?.unwrap_or_default());
        notes.push(&line)?;
        all.push_str(&line);
    }
    notes.finish(&all)?;
    ctx.done(if all.is_empty() { "Nothing yet.".to_owned() } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::ScriptedHost;

    #[test]
    fn stored_note_is_listed() {
        let host = ScriptedHost::new();
        assert_eq!(host.run::<Notebook>("notes").unwrap().text(), "Nothing yet.");
        assert_eq!(host.run::<Notebook>("note buy milk").unwrap().text(), "That makes 1.");
        assert_eq!(host.run::<Notebook>("notes").unwrap().text(), "- buy milk\n");
    }

    #[test]
    fn missing_note_is_asked_for() {
        let host = ScriptedHost::new();
        host.answer("feed the cat");
        assert_eq!(host.run::<Notebook>("note").unwrap().text(), "That makes 1.");
        assert_eq!(host.run::<Notebook>("notes").unwrap().text(), "- feed the cat\n");
    }
}
