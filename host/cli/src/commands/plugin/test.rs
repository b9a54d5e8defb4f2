//! `plugin test`: checks that a component conforms to the contract.

use super::build::THIS_PROGRAM;
use crate::{
    Exit, Global,
    ui::{
        interactive::TICK,
        text::{FAINT, PLAIN, Text, style_of},
        width::wrapped,
    },
};
use a2a_hub_authoring::{
    self as authoring, Check, ConformancePhase, MAX_BYTES, Subject, Verdict, read_at_most,
};
use anyhow::Context as _;
use clap::Args;
use std::{cell::RefCell, path::PathBuf};
use tokio::time::sleep;

/// Width, in columns, of a report in a pipe or a file.
const COLUMNS: usize = 100;

/// Width of the verdict and the id of a check, in columns.
const INDENT: usize = 27;

/// Text at the end of `plugin test --help`.
const MORE: &str = "\
The sandbox gives access to no program, host, file or other agent, and stores nothing.
Exit status: 0 if the component passes, 1 if a check failed, 2 if it could not be tested.
With `--format json` the report is one object.";

#[derive(Debug, Args)]
#[command(after_help = MORE, after_long_help = MORE)]
pub(crate) struct Test {
    /// Component file
    component: PathBuf,
    /// Further message to send to the component. May be given several times
    #[arg(long = "say", value_name = "TEXT")]
    say: Vec<String>,
}

/// Tests a component and prints the report.
pub(super) fn test(global: &Global, asked: &Test) -> anyhow::Result<Exit> {
    let bytes = read_at_most(&asked.component, MAX_BYTES);
    let what = || format!("read the component {}", asked.component.display());
    let subject = Subject {
        file: asked.component.clone(),
        bytes: bytes.with_context(what)?,
        say: asked.say.clone(),
        compiler: Some(THIS_PROGRAM.into()),
        cache: global.data_dir().ok().and_then(|dir| a2a_hub::compile_cache(&dir)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let name = asked.component.file_name().unwrap_or_default().display();
    let progress = {
        // Its timer belongs to the runtime.
        let _inside = runtime.enter();
        RefCell::new(global.progress(&format!("testing {name}"), true))
    };
    let told = |step| {
        let said = match step {
            ConformancePhase::Compiling => {
                "compiling; Python and JavaScript take up to 30 s the first time"
            }
            ConformancePhase::Trying => "running its checks",
        };
        if global.console().stderr_columns().is_some() {
            progress.borrow_mut().says(Some(said.to_owned()));
        }
    };
    let keep_drawing = async || loop {
        sleep(TICK).await;
        progress.borrow_mut().draw_if_due();
    };
    let report = runtime.block_on(async {
        tokio::select! {
            report = authoring::check(subject, told) => report.map(Some),
            // Dropping the check removes its temporary files.
            _ = tokio::signal::ctrl_c() => Ok(None),
            () = keep_drawing() => Ok(None),
        }
    });
    drop(progress);
    // A guest that still runs must not delay the exit.
    runtime.shutdown_background();
    let Some(report) = report? else { return Ok(Exit::Interrupted) };
    let columns = global.console().columns().unwrap_or(COLUMNS);
    global.show(&report.to_json(), || Ok(shown(report.checks(), columns)))?;
    Ok(if report.is_passed() { Exit::Done } else { Exit::TaskFailed })
}

/// Word for a verdict.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "fail",
        Verdict::NotApplicable => "n/a",
    }
}

/// Formats the report for people.
fn shown(checks: &[Check], columns: usize) -> Text {
    let mut out = Text::new();
    for Check { id, rule, verdict, found, fix } in checks {
        out.push(style_of(word(*verdict)), &format!("{:<5}", word(*verdict)));
        out.push(PLAIN, &format!("{id:<22}"));
        let beside = columns.saturating_sub(INDENT).max(INDENT);
        let rule = wrapped(rule, beside).join(&format!("\n{:INDENT$}", ""));
        out.push(FAINT, &format!("{rule}\n"));
        let mut below = |mark: &str, said: &str| {
            for line in wrapped(said, columns.saturating_sub(9).max(INDENT)) {
                out.push(PLAIN, &format!("       {mark}{line}\n"));
            }
        };
        if *verdict != Verdict::Passed {
            below("", found);
        }
        if let Some(fix) = fix {
            below("→ ", fix);
        }
    }
    let of = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (right, wrong, open) =
        (of(Verdict::Passed), of(Verdict::Failed), of(Verdict::NotApplicable));
    let (end, state) = if wrong == 0 { ("it passes", "ok") } else { ("it does not pass", "fail") };
    let counts = format!("{end}: {right} passed, {wrong} failed, {open} not applicable\n");
    out.push(style_of(state), &counts);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_shows_failures_with_fixes() {
        let check = |id, rule, verdict, found: &str, fix| {
            let found = found.to_owned();
            Check { id, rule, verdict, found, fix }
        };
        let rule = "its manifest can be followed";
        let passed = check("manifest.read", rule, Verdict::Passed, "x 1.0", None);
        let rule = "it compiles within the hub's limits and fits the contract";
        let fix = Some("build it again");
        let failed = check("component.loads", rule, Verdict::Failed, "it is [2J not", fix);
        insta::assert_snapshot!(shown(&[passed, failed], COLUMNS).words(), @"
        ok   manifest.read         its manifest can be followed
        fail component.loads       it compiles within the hub's limits and fits the contract
               it is [2J not
               → build it again
        it does not pass: 1 passed, 1 failed, 0 not applicable
        ");
    }
}
