//! Checks of a component's runs: its reaction to each kind of message, to cancellation, to limits
//! and to denials.

use super::{
    report::{Check, failed, not_applicable, passed, sanitize},
    stage::{ConformanceBench, GRACE, PortReaction, RunObservations, TrialEnd, TrialRun},
};
use a2a_hub_core::grant::Ask;
use a2a_hub_protocol::{
    card::AgentCard,
    id::ContextId,
    message::{Content, Message, Part, Role},
    task::TaskState,
};
use a2a_hub_runtime::{Ended, Failure, Limits};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Delay until a task that emits nothing is cancelled.
const SOON: Duration = Duration::from_millis(50);

/// Duration of the task that runs while its component is loaded again.
const LONG: Duration = Duration::from_secs(2);

/// Limits of events and bytes for a task that shall exhaust them.
const FEW: (u64, u64) = (1, 1_024);

/// CPU limit of such a task: a component that keeps emitting exhausts it soon.
const LITTLE_CPU: Duration = Duration::from_secs(1);

/// Prefixes of the hub's errors about an invalid outcome. An agent that fails with the same text
/// declares the outcome invalid itself.
const NO_OUTCOMES: [&str; 5] = [
    "the agent returned while ",
    "a message has at least one part",
    "metadata is ",
    "a data part is ",
    "emit a status that is ",
];

/// One check.
#[derive(Clone, Copy, Debug)]
pub(super) enum Try {
    Plain,
    Empty,
    Huge,
    Unicode,
    Data,
    File,
    Context,
    Cancel,
    CleanUp,
    Output,
    Reload,
    Granted,
    /// The denials that the other checks showed; runs last.
    Denials,
}

pub(super) const ALL: &[Try] = &[
    Try::Plain,
    Try::Empty,
    Try::Huge,
    Try::Unicode,
    Try::Data,
    Try::File,
    Try::Context,
    Try::Cancel,
    Try::CleanUp,
    Try::Output,
    Try::Reload,
    Try::Granted,
    Try::Denials,
];

/// Results of a component's runs so far.
pub(super) struct Conduct<'a> {
    stage: &'a ConformanceBench,
    card: &'a AgentCard,
    prompts: Vec<String>,
    /// Denied capabilities.
    refused: BTreeSet<String>,
    /// Capabilities that were denied in a run that broke, with the reason.
    broke: BTreeMap<String, String>,
    /// Capabilities that were denied in a run that did not break.
    survived: BTreeSet<String>,
}

impl<'a> Conduct<'a> {
    pub(super) fn new(
        stage: &'a ConformanceBench,
        card: &'a AgentCard,
        prompts: Vec<String>,
    ) -> Self {
        let (refused, broke, survived) = Default::default();
        Self { stage, card, prompts, refused, broke, survived }
    }

    pub(super) async fn check(&mut self, kind: Try) -> Vec<Check> {
        let user = |parts| Message::new(Role::User, parts);
        let one = match kind {
            Try::Plain => {
                let all = self.prompts.iter().map(|prompt| TrialRun::saying(prompt)).collect();
                self.check_trials("message.plain", all).await
            }
            Try::Empty => {
                let all = ["", " \n\t "].map(TrialRun::saying).into();
                self.check_trials("message.empty", all).await
            }
            Try::Huge => {
                let words = "all work and no play ".repeat(50_000);
                let line = "x".repeat(1_000_000);
                let all = [words, line].iter().map(|text| TrialRun::saying(text)).collect();
                self.check_trials("message.huge", all).await
            }
            Try::Unicode => {
                let all = ODD.iter().map(|text| TrialRun::saying(text)).collect();
                self.check_trials("message.unicode", all).await
            }
            Try::Data => {
                let deep = (0..60).fold(json!({ "": null }), |inner, _| json!([inner]));
                let all = [deep, json!({ "text": 1, "é": [1e308, -0.0, "\u{0}"] }), Value::Null];
                let trial = |data| TrialRun::new(user(vec![Part::data(data)]));
                self.check_trials("message.data", all.into_iter().map(trial).collect()).await
            }
            Try::File => {
                let file = Part {
                    filename: Some("../../etc/passwd\n".to_owned()),
                    media_type: Some("application/octet-stream".to_owned()),
                    ..Part::new(Content::Raw(vec![0xff; 4_096]))
                };
                let url = Part::new(Content::Url("file:///etc/passwd".to_owned()));
                let all = [file, url].map(|part| TrialRun::new(user(vec![part]))).into();
                self.check_trials("message.file", all).await
            }
            Try::Context => {
                let all = self.prompts.iter().take(2).map(|prompt| in_context(prompt)).collect();
                self.check_trials("message.context", all).await
            }
            Try::Cancel => self.cancel().await,
            Try::CleanUp => clean_up(self.stage).await,
            Try::Output => self.output().await,
            Try::Reload => self.reload().await,
            Try::Granted => self.granted().await,
            Try::Denials => return vec![self.denied(), self.declares()],
        };
        vec![one]
    }

    async fn run(&mut self, trial: &TrialRun) -> RunObservations {
        let observed = self.stage.run(trial).await;
        self.note(&observed);
        observed
    }

    /// Runs all trials concurrently.
    async fn run_all(&mut self, trials: &[TrialRun]) -> Vec<RunObservations> {
        let all = join_all(trials.iter().map(|trial| self.stage.run(trial))).await;
        all.iter().for_each(|observed| self.note(observed));
        all
    }

    fn note(&mut self, observed: &RunObservations) {
        match &observed.end {
            TrialEnd::Ended(Ended::Failed(why @ Failure::Trapped(_))) => {
                let broke = observed.refused.iter().map(|used| (used.clone(), why.in_full()));
                self.broke.extend(broke);
            }
            TrialEnd::Ended(_) | TrialEnd::Stopped(_) | TrialEnd::Cut => {
                self.survived.extend(observed.refused.iter().cloned());
            }
        }
        self.refused.extend(observed.refused.iter().cloned());
    }

    /// Checks that each trial ends in a valid way.
    async fn check_trials(&mut self, id: &'static str, mut all: Vec<TrialRun>) -> Check {
        let mut outcomes = BTreeSet::new();
        // The hub refuses messages that the card does not accept.
        all.retain(|trial| self.card.part_not_taken(&trial.message).is_none());
        for (trial, observed) in all.iter().zip(self.run_all(&all).await) {
            let label = describe(&trial.message);
            if let Some(why) = broke(&observed.end) {
                let fix = "end each task with a status, `Failure::Invalid` or `ctx.reject`, whatever the message is; never `unwrap` what came from outside";
                return failed(id, sanitize(&format!("told {label}: {why}")), fix);
            }
            if observed.end == TrialEnd::Cut {
                let found = format!("told {label}: still at work, and deaf to the end of its task");
                return failed(id, sanitize(&found), DEAF);
            }
            outcomes.insert(outcome(&observed.end));
        }
        if outcomes.is_empty() {
            return not_applicable(id, "its card takes no such part");
        }
        passed(id, outcomes.into_iter().collect::<Vec<_>>().join(", "))
    }

    async fn cancel(&mut self) -> Check {
        let id = "cancel.in-time";
        let mut was_at_work = false;
        for prompt in self.prompts.clone() {
            for reaction in [PortReaction::Cancelling, PortReaction::All] {
                let trial = TrialRun { reaction, timeout: SOON, ..TrialRun::saying(&prompt) };
                let observed = self.run(&trial).await;
                was_at_work |= !matches!(observed.end, TrialEnd::Ended(_));
                if observed.end == TrialEnd::Cut {
                    let label = describe(&trial.message);
                    let grace = GRACE.as_millis();
                    let found = format!(
                        "told {label}, it was still at work {grace} ms after it was cancelled"
                    );
                    return failed(id, sanitize(&found), DEAF);
                }
            }
        }
        if was_at_work {
            passed(id, "it ended by itself")
        } else {
            let found = "it was never at work: each answer was there at once; name a longer task with `--say`";
            not_applicable(id, found)
        }
    }

    /// Runs tasks with almost no output limit.
    async fn output(&mut self) -> Check {
        let id = "limits.output";
        let (events, output_bytes) = FEW;
        let mut is_used_up = false;
        let all = self.prompts.iter().map(|prompt| {
            let trial = TrialRun::saying(prompt);
            let limits = Limits { events, output_bytes, cpu: LITTLE_CPU, ..trial.limits };
            TrialRun { limits, ..trial }
        });
        let all: Vec<_> = all.collect();
        for (trial, observed) in all.iter().zip(self.run_all(&all).await) {
            let label = describe(&trial.message);
            let fix = "end the task when `emit` says `exhausted`: `?` does";
            let why = match &observed.end {
                TrialEnd::Ended(Ended::Failed(Failure::Exhausted(why))) => {
                    is_used_up = true;
                    why.contains("cpu_ms").then_some("until its time on the processor was used up")
                }
                TrialEnd::Cut => Some("and was deaf to the end of its task"),
                TrialEnd::Ended(_) | TrialEnd::Stopped(_) => None,
            };
            if let Some(why) = why {
                let found =
                    format!("told {label}, it went on although it could tell no more, {why}");
                return failed(id, sanitize(&found), fix);
            }
            is_used_up |= u64::try_from(observed.emit_calls).is_ok_and(|calls| calls >= events);
            if let Some(why) = broke(&observed.end) {
                return failed(id, sanitize(&why), fix);
            }
        }
        if is_used_up {
            passed(id, format!("with {events} events and {output_bytes} bytes"))
        } else {
            not_applicable(
                id,
                "it told too little to use anything up; name a longer task with `--say`",
            )
        }
    }

    /// Loads the component again while one of its tasks runs.
    async fn reload(&mut self) -> Check {
        let id = "reload";
        let fix = "keep nothing between tasks but what `ctx.remember` keeps: each runs in an instance of its own";
        let Some(prompt) = self.prompts.first().cloned() else { return not_applicable(id, "") };
        let old = TrialRun {
            timeout: LONG,
            reaction: PortReaction::Nothing,
            ..TrialRun::saying(&prompt)
        };
        let new = TrialRun::saying(&prompt);
        let (before, after) = tokio::join!(self.stage.run(&old), async {
            let again = self.stage.reloaded().await?;
            let card = again.card().await;
            Ok::<_, String>((card, again.run(&new).await))
        });
        self.note(&before);
        let (card, after) = match after {
            Ok(after) => after,
            Err(why) => return failed(id, sanitize(&why), fix),
        };
        self.note(&after);
        if card.as_ref() != Ok(self.card) {
            return failed(id, "loaded again, it says another card", fix);
        }
        for observed in [&before, &after] {
            let why = broke(&observed.end);
            let why = why
                .or_else(|| (observed.end == TrialEnd::Cut).then(|| "it did not end".to_owned()));
            if let Some(why) = why {
                return failed(id, sanitize(&why), fix);
            }
        }
        passed(id, outcome(&after.end))
    }

    async fn granted(&mut self) -> Check {
        let id = "capabilities.granted";
        let Some(stage) = self.stage.harmless() else {
            return not_applicable(id, "it asks for neither memory nor files");
        };
        let fix = "see what it makes of values and files, also of those that are not there";
        let all: Vec<_> = self.prompts.iter().map(|prompt| TrialRun::saying(prompt)).collect();
        let observations = join_all(all.iter().map(|trial| stage.run(trial))).await;
        for (trial, observed) in all.iter().zip(observations) {
            let why = broke(&observed.end);
            let why = why
                .or_else(|| (observed.end == TrialEnd::Cut).then(|| "it did not end".to_owned()));
            if let Some(why) = why {
                let label = describe(&trial.message);
                return failed(id, sanitize(&format!("told {label}: {why}")), fix);
            }
        }
        passed(id, "with memory and files, as far as it asks for them")
    }

    fn denied(&self) -> Check {
        let id = "capabilities.denied";
        // A capability whose denial one run survived did not break another run.
        let mut broke = self.broke.iter().filter(|(used, _)| !self.survived.contains(*used));
        if let Some((used, why)) = broke.next() {
            let fix = "take `Failure::Denied` for an answer: say what is missing, or pass it on with `?`; never `unwrap` it";
            return failed(id, sanitize(&format!("{used} was denied, and {why}")), fix);
        }
        if self.refused.is_empty() {
            return not_applicable(id, "it used no capability");
        }
        passed(id, sanitize(&list(&self.refused)))
    }

    fn declares(&self) -> Check {
        let id = "manifest.declares";
        let ask = self.stage.ask();
        let undeclared: BTreeSet<_> =
            self.refused.iter().filter(|used| !is_requested(ask, used)).cloned().collect();
        if !undeclared.is_empty() {
            let found =
                format!("it uses {}, which its manifest does not ask for", list(&undeclared));
            let fix = "ask for it in the manifest, with a `reason` for the operator: what is not asked for is never granted";
            return failed(id, sanitize(&found), fix);
        }
        if self.refused.is_empty() {
            return passed(id, "it was not seen to use any capability");
        }
        passed(id, sanitize(&list(&self.refused)))
    }
}

const DEAF: &str =
    "pass `Failure::Cancelled` on with `?`, and look at `ctx.cancelled()` in long computations";

async fn clean_up(stage: &ConformanceBench) -> Check {
    let id = "cancel.cleans-up";
    let fix = "clean up what is there, and take it for done where nothing is";
    match stage.clean_up().await {
        None => failed(id, "it had not cleaned up after two seconds", fix),
        Some(Err(why @ (Failure::Trapped(_) | Failure::Exhausted(_)))) => {
            failed(id, sanitize(&why.in_full()), fix)
        }
        Some(Ok(())) => passed(id, "done"),
        Some(Err(why)) => passed(id, sanitize(&why.to_string())),
    }
}

/// Returns the reason if a run broke, that is, ended in a way that no task may.
fn broke(end: &TrialEnd) -> Option<String> {
    let (TrialEnd::Ended(ended) | TrialEnd::Stopped(ended)) = end else { return None };
    let Ended::Failed(failure) = ended else { return None };
    match failure {
        Failure::Trapped(_) | Failure::Diverged(_) => Some(failure.in_full()),
        Failure::Exhausted(why) if why.contains("cpu_ms") || why.contains("memory_mb") => {
            Some(why.clone())
        }
        Failure::Invalid(why) if NO_OUTCOMES.iter().any(|begin| why.starts_with(begin)) => {
            Some(why.clone())
        }
        Failure::Invalid(_)
        | Failure::Unsupported(_)
        | Failure::Denied(_)
        | Failure::Cancelled
        | Failure::Timeout
        | Failure::Unavailable(_)
        | Failure::HubNotUp(_)
        | Failure::HubFull
        | Failure::Exhausted(_)
        | Failure::Internal(_) => None,
    }
}

/// Names the outcome of a run.
fn outcome(end: &TrialEnd) -> &'static str {
    match end {
        TrialEnd::Ended(Ended::Reply(_)) => "a message",
        TrialEnd::Ended(Ended::Status { state, .. }) => TaskState::name(*state),
        TrialEnd::Ended(Ended::Failed(failure)) => {
            failure.reason().map_or("canceled", |reason| reason.name())
        }
        TrialEnd::Stopped(_) => "at work until it was cancelled",
        TrialEnd::Cut => "cut",
    }
}

/// True if a manifest asks for the capability.
fn is_requested(ask: &Ask, used: &str) -> bool {
    match used.split_once('.') {
        Some(("process", program)) => ask.process.contains_key(program),
        Some(("http", host)) => ask.http.keys().any(|pattern| pattern.matches(host)),
        Some(_) | None => match used {
            "memory" => ask.memory.is_some(),
            "files" => ask.files.is_some(),
            "tools" => !ask.tools.is_empty(),
            "delegate" => !ask.delegate.agents.is_none(),
            _ => false,
        },
    }
}

fn list(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Describes a message for people who may want to send it again.
fn describe(message: &Message) -> String {
    let text = message.joined_text();
    match message.parts.first().map(|part| &part.content) {
        Some(Content::Text(_)) if text.trim().is_empty() => "nothing".to_owned(),
        Some(Content::Text(_)) if text.len() > 100 => format!("a text of {} bytes", text.len()),
        Some(Content::Text(_)) => format!("`{text}`"),
        Some(Content::Data(_)) => "a data part".to_owned(),
        Some(Content::Raw(_)) => "a file".to_owned(),
        Some(Content::Url(_)) => "a URL".to_owned(),
        None => "nothing".to_owned(),
    }
}

/// Texts that break code which counts bytes, prints untrusted text, or mistakes text for commands.
const ODD: &[&str] = &[
    "größer ❤️ 👩‍👩‍👧 مرحبا 漢字 e\u{301}",
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{0}\u{202e}txt.exe\u{feff}",
    "é",
    "--help; $(touch /tmp/x) `x` | y && z \\ \" ' {} {0} %s %n ../../..",
    "{\"jsonrpc\":\"2.0\"",
];

/// Creates a trial in a conversation that is new to the component and has a long history.
fn in_context(text: &str) -> TrialRun {
    let mut trial = TrialRun::saying(text);
    let odd = json!({ "": null, "urn:unknown": { "level": [1, 2, 3] } });
    trial.message.metadata = odd.as_object().cloned();
    trial.message.context_id = Some(ContextId::fresh());
    let role = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Agent };
    trial.history = (0..50).map(|at| Message::text(role(at), format!("message {at}"))).collect();
    trial
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_runtime::Crash;

    #[test]
    fn used_capability_matches_manifest_request() {
        let ask: Ask = toml::from_str(
            "[process.git]\nargs = [[\"log\"]]\n[memory]\nmax_bytes = 1\n[http.\"*.example.com\"]\n",
        )
        .unwrap();
        for used in ["process.git", "memory", "http.api.example.com"] {
            assert!(is_requested(&ask, used), "{used}");
        }
        for used in ["process.sh", "process", "files", "tools", "delegate", "http.example.org", "x"]
        {
            assert!(!is_requested(&ask, used), "{used}");
        }
    }

    #[test]
    fn only_traps_and_limits_break_run() {
        let of = |failure| broke(&TrialEnd::Ended(Ended::Failed(failure)));
        for fine in [
            Failure::Denied("no".to_owned()),
            Failure::Invalid("say more".to_owned()),
            Failure::Exhausted("emit: `events`".to_owned()),
            Failure::Cancelled,
        ] {
            assert_eq!(of(fine.clone()), None, "{fine}");
        }
        for wrong in [
            Failure::Trapped(Crash::panic("panicked")),
            Failure::Exhausted("raise `cpu_ms`".to_owned()),
            Failure::Invalid("the agent returned while working: no".to_owned()),
        ] {
            assert!(of(wrong.clone()).is_some(), "{wrong}");
        }
    }
}
