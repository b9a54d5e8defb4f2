//! Agent that runs a project's tests by the program that the operator grants as `tests`. It streams
//! the log, and ends with a report for people and for programs. It understands the output of
//! Cargo's tests (`test NAME ... ok`) and TAP (`ok 1 - NAME`).

use a2a_hub_sdk::{Part, prelude::*, serde_json::json};

/// Number of log lines that are sent together.
const PIECE: usize = 40;

/// Maximum number of failures named in the report.
const MAX_NAMED: usize = 100;

/// Agent that runs tests.
pub struct TestRunner;

#[derive(Debug, Default, PartialEq)]
struct Found {
    passed: usize,
    ignored: usize,
    failed: Vec<String>,
    /// Planned number of tests, once known.
    planned: usize,
}

impl Agent for TestRunner {
    fn card() -> Card {
        Card::new("test-runner", "Runs a project's tests", env!("CARGO_PKG_VERSION"))
            .output("text/markdown")
            .output("application/json")
            .skill("test", "Test", "Runs the tests, or those of a name", &["test"])
            .example("all")
            .example("login")
    }

    fn health(ctx: &Context) -> Health {
        match ctx.fingerprint("tests") {
            Ok(_) => Health::healthy(),
            Err(why) => Health::unhealthy(why.text())
                .with_fix("grant.process.tests = { path = \"/path/to/run-tests\" }"),
        }
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let request = task.text();
        let only = request.trim();
        let mut command = Command::new("tests");
        if !matches!(only, "" | "all") {
            command = command.args(["--", only]);
        }
        ctx.progress(0, "starts the tests")?;
        let (mut found, mut unsent, mut begun) = (Found::default(), Vec::new(), false);
        let mut log = |lines: &mut Vec<String>| {
            let piece = Artifact::new("log", vec![Part::text(lines.join("\n") + "\n")]);
            lines.clear();
            if std::mem::replace(&mut begun, true) {
                ctx.append(piece, false)
            } else {
                ctx.begin(piece)
            }
        };
        let exit = ctx.run_lines(command, |line| {
            unsent.push(line.to_owned());
            if found.process_line(line) {
                ctx.progress(found.percent(), format!("{} failed so far", found.failed.len()))?;
            }
            if unsent.len() >= PIECE { log(&mut unsent) } else { Ok(()) }
        })?;
        if !unsent.is_empty() {
            log(&mut unsent)?;
        }
        report(ctx, &found)?;
        let Found { passed, failed, .. } = &found;
        if found.count() == 0 {
            let text = format!("No test was run. {}", exit.stderr);
            return ctx.fail_with_fix("no_tests", text, "see the artifact `log`");
        }
        if failed.is_empty() && exit.success() {
            return ctx.done(format!("{passed} passed"));
        }
        let named = failed.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
        ctx.fail("tests_failed", format!("{} failed, {passed} passed: {named}", failed.len()))
    }
}
export!(TestRunner, manifest = "../manifest.toml");

impl Found {
    /// Handles a line; returns true if the progress should be reported.
    fn process_line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("running ") {
            let planned = rest.split(' ').next().and_then(|number| number.parse::<usize>().ok());
            self.planned += planned.unwrap_or(0);
            return false;
        }
        if let Some(planned) = line.strip_prefix("1..") {
            self.planned = planned.parse().unwrap_or(0);
            return false;
        }
        let named = |rest: &str| rest.split_once(" - ").map_or(rest, |(_, name)| name).to_owned();
        if let Some((name, end)) = line.strip_prefix("test ").and_then(|it| it.split_once(" ... "))
        {
            match end.split([',', ' ']).next() {
                Some("ok") => self.passed += 1,
                Some("ignored") => self.ignored += 1,
                Some("FAILED") => self.failed.push(name.to_owned()),
                Some(_) | None => return false,
            }
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            self.failed.push(named(rest));
        } else if line.strip_prefix("ok ").is_some() {
            self.passed += 1;
        } else {
            return false;
        }
        self.count().is_multiple_of(10) || line.contains("FAILED") || line.starts_with("not ok")
    }

    fn count(&self) -> usize {
        self.passed + self.ignored + self.failed.len()
    }

    fn percent(&self) -> u8 {
        let percent = self.count() * 100 / self.planned.max(self.count()).max(1);
        u8::try_from(percent).unwrap_or(100)
    }
}

/// Emits the report for people and for programs.
fn report(ctx: &Context, found: &Found) -> Result<(), Failure> {
    let Found { passed, ignored, failed, .. } = found;
    let mut text = format!(
        "| passed | failed | left out |\n| --: | --: | --: |\n| {passed} | {} | {ignored} |\n",
        failed.len()
    );
    for name in failed.iter().take(MAX_NAMED) {
        // Names come from a program, so they are formatted as code.
        text += &format!("- `{}`\n", name.replace('`', "'"));
    }
    let data = json!({ "passed": passed, "ignored": ignored, "failed": failed.iter().take(MAX_NAMED).collect::<Vec<_>>() });
    let parts = vec![Part::text(text).of_type("text/markdown"), Part::data(&data)];
    ctx.artifact(Artifact::new("report", parts).named("Test report"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::ScriptedHost;

    const CARGO: &str = "\nrunning 3 tests\ntest a::one ... ok\ntest b ... ignored, needs a net\ntest c::two ... FAILED\n\n\
                         test result: FAILED. 1 passed; 1 failed; 1 ignored\n";

    #[test]
    fn report_names_failures_beside_full_log() {
        let host = ScriptedHost::new();
        host.program("tests").args(&["--", "login"]).stdout(CARGO).exit(101);
        let outcome = host.run::<TestRunner>("login").unwrap();
        assert_eq!(outcome.text(), "1 failed, 1 passed: c::two");
        assert_eq!(outcome.metadata()["reason"], "tests_failed");
        assert_eq!(host.artifact("log").unwrap(), CARGO);
        assert!(host.artifact("report").unwrap().ends_with("| 1 | 1 | 1 |\n- `c::two`\n"));
        assert_eq!(host.said(), ["starts the tests", "1 failed so far"]);
    }

    #[test]
    fn tap_is_parsed_and_zero_tests_fail() {
        let host = ScriptedHost::new();
        host.program("tests").args(&[]).stdout("1..2\nok 1 - opens\nok 2 - closes\n");
        assert_eq!(host.run::<TestRunner>("all").unwrap().text(), "2 passed");
        host.program("tests").stderr("no such package").exit(1);
        let none = host.run::<TestRunner>("").unwrap();
        assert_eq!(none.text(), "No test was run. no such package");
        assert_eq!(none.metadata()["reason"], "no_tests");
    }

    #[test]
    fn progress_is_capped_at_100_percent() {
        let mut found = Found { planned: 2, ..Found::default() };
        assert_eq!(found.percent(), 0);
        found.passed = 1;
        assert_eq!(found.percent(), 50);
        found.passed = 5;
        assert_eq!(found.percent(), 100);
        assert!(
            !found.process_line("test x ... hangs")
                && !found.process_line("")
                && !found.process_line("1..x")
        );
    }
}
