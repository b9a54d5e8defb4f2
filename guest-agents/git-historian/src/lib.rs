//! Answers questions about a repository's history in plain language, without an account or a model.
//!
//! ```text
//! question   a sentence -> Question           pure; helpers: words, span
//! historian  Question -> facts in order; streams sections as they are ready
//! git        every invocation, as manifest.toml allows; parse: output -> facts
//! tally      sums of facts                    pure, as are releases and paths
//! answer     facts -> Markdown                pure; helper: markdown
//! error      errors, each with a way out
//! ```

mod answer;
mod error;
mod git;
mod historian;
mod markdown;
mod paths;
mod question;
mod releases;
mod span;
mod tally;
mod words;

use a2a_hub_sdk::prelude::*;
use jiff::civil::Date;

use error::QuestionError;
use question::HistoryQuestion;

/// Agent that answers questions about git history.
pub struct GitHistorian;

export!(GitHistorian, manifest = "../manifest.toml");

impl Agent for GitHistorian {
    fn card() -> Card {
        let description = "Answers questions about a git repository's history: what changed, who knows what, where a \
                           line comes from. Needs neither an account nor a model.";
        Card::new("git-historian", description, env!("CARGO_PKG_VERSION"))
            .output("text/markdown")
            .skill(
                "changes",
                "Changes",
                "What changed in a time, a range or a folder",
                &["git", "history"],
            )
            .example("what changed last week?")
            .example("what changed since v1.1 in src/?")
            .skill(
                "releases",
                "Releases",
                "What a release brought, by kind or area",
                &["git", "changelog"],
            )
            .example("summarise release v1.2")
            .skill("people", "People", "Who knows a file best, who works here", &["git", "review"])
            .example("who knows src/lib.rs best?")
            .example("who works on this repository?")
            .example("how many commits are there?")
            .skill("origin", "Origin", "When and why a text or a line came in", &["git", "blame"])
            .example("when was \"MAX_LINE\" introduced?")
            .example("why is src/lib.rs:42 here?")
            .example("history of src/lib.rs")
            .example("show commit abc1234")
            .skill("hot-spots", "Hot spots", "Which files change most", &["git", "quality"])
            .example("which files change most?")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        answer_as_of(ctx, task, today())
    }

    fn health(ctx: &Context) -> Health {
        match git::Git::new(ctx, None).version() {
            Ok(version) => Health::healthy().with_version(version),
            Err(error) => Health::unhealthy(error.to_string())
                .with_fix("install git, and grant it to git-historian in the hub's configuration"),
        }
    }
}

/// Answers a task as if today were that day (UTC).
pub fn answer_as_of(ctx: &Context, task: &Task, today: Date) -> Run {
    let question = HistoryQuestion::parse(&task.text(), today);
    if question == HistoryQuestion::Unknown {
        return ctx.reject(sentence(&QuestionError::UnknownQuestion.to_string()));
    }
    if !task.additional_directories().is_empty() {
        ctx.say("git-historian reads the repository of the working directory alone, and not the additional directories")?;
    }
    match historian::answer(ctx, task.working_directory.as_deref(), &question, today) {
        Ok(summary) => ctx.done(summary),
        Err(QuestionError::Hub(failure)) => Err(failure),
        Err(error) => ctx.fail(error.reason(), sentence(&error.to_string())),
    }
}

/// Turns a fragment into a sentence.
fn sentence(fragment: &str) -> String {
    let mut letters = fragment.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let end = if fragment.ends_with(['?', '.']) { "" } else { "." };
    format!("{}{}{end}", first.unwrap_or_default(), letters.as_str())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one look at the clock; everything below is told the day"
)]
fn today() -> Date {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since_1970.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or_default());
    markdown::day(seconds)
}
