//! Fuzzes reading output of vendors' programs: `cargo fuzz run drivers`. The first byte selects the
//! program, the rest is its output.
#![no_main]

use a2a_hub_sdk::cli::{Action, Decision, Driver, Job, acp::Acp};
use a2a_hub_sdk::{Message, Part};

fn run(mut driver: impl Driver, lines: &str) {
    driver.greet();
    driver.begin();
    for line in lines.lines() {
        for action in driver.line(line) {
            if let Action::Ask(question) = action {
                let said = Message::user(vec![Part::data(&question.input)]);
                driver.decided(&question, &Decision::Said(Box::new(said)));
            }
        }
        driver.complaint(line);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((program, lines)) = bytes.split_first() else { return };
    let (lines, job) = (String::from_utf8_lossy(lines), Job::default());
    match program % 5 {
        0 => run(claude_code::driver::Claude::new(&job), &lines),
        1 => run(codex::driver::Driver::new(&job), &lines),
        2 => run(gemini::one_shot::OneShot::new(&job), &lines),
        3 => run(Acp::new(gemini::Gemini, job, "/workspace"), &lines),
        _ => run(Acp::new(vibe::Vibe, job, "/workspace"), &lines),
    }
});
