//! Output of `decide`: the decision, the answer of each agent with its reason, the agents that
//! failed, and the cost.

use a2a_hub_authoring::decision_flow::STEP;
use a2a_hub_socket_client::{
    exit::Exit,
    failure::CommandError,
    global::{Format, Global},
    hub_client::Client,
};
use a2a_hub_terminal::{
    render::{list, shell_word, text},
    table::{Cell, Table},
    task_snapshot::TaskStateSnapshot,
    text::{FAINT, Text},
    width::{cut, fold},
};
use anyhow::bail;
use serde_json::{Map, Value, json};

/// Failure reason of a flow whose text is wrong.
const INVALID_FLOW: &str = "invalid_flow";

/// Columns of a reason that are shown; the JSON output has all of it.
const MAX_REASON: usize = 400;

/// Members of a step's output.
struct OutputForm {
    /// Key of the step.
    rule: &'static str,
    /// List of the agents' answers.
    answers: &'static str,
    /// Columns of an answer: the header, and the member.
    columns: &'static [(&'static str, &'static str)],
    /// Reason or plan of an answer.
    reason: &'static str,
    /// Lists of agents without an answer, or whose work failed.
    failed: &'static [&'static str],
    /// True if the text of the step is that of an agent, and not a summary of the rule.
    has_answer: bool,
}

const FORMS: [OutputForm; 7] = [
    OutputForm {
        rule: "vote",
        answers: "ballots",
        columns: &[("AGENT", "agent"), ("CHOICE", "choice"), ("CONFIDENCE", "confidence")],
        reason: "reason",
        failed: &["failed"],
        has_answer: false,
    },
    // The answers have no names: the rounds are anonymous.
    OutputForm {
        rule: "delphi",
        answers: "answers",
        columns: &[("VALUE", "value")],
        reason: "reason",
        failed: &[],
        has_answer: false,
    },
    OutputForm {
        rule: "auction",
        answers: "bids",
        columns: &[("AGENT", "agent"), ("BID", "bid")],
        reason: "reason",
        failed: &["without", "failed"],
        has_answer: true,
    },
    OutputForm {
        rule: "contract_net",
        answers: "proposals",
        columns: &[
            ("AGENT", "agent"),
            ("ACCEPTED", "accepted"),
            ("CONFIDENCE", "confidence"),
            ("MINUTES", "minutes"),
            ("COST", "cost"),
        ],
        reason: "plan",
        failed: &["refused"],
        has_answer: true,
    },
    OutputForm {
        rule: "negotiation",
        answers: "",
        columns: &[],
        reason: "",
        failed: &[],
        has_answer: true,
    },
    OutputForm {
        rule: "election",
        answers: "ranking",
        columns: &[("AGENT", "agent"), ("SCORE", "score")],
        reason: "plan",
        failed: &["without", "failed"],
        has_answer: true,
    },
    OutputForm {
        rule: "blackboard",
        answers: "items",
        columns: &[("ITEM", "id"), ("STATE", "state"), ("BY", "by"), ("TEXT", "text")],
        reason: "result",
        failed: &["failed"],
        has_answer: false,
    },
];

/// Agent without an answer, or whose work failed.
struct FailedAgent {
    agent: String,
    reason: String,
}

/// Usage of all tasks of a decision.
#[derive(Default)]
struct DecisionCost {
    tasks: usize,
    tokens: u64,
    usd: f64,
    /// True if the hub did not list all tasks.
    is_cut: bool,
}

/// Decision as the flow's task tells it.
struct JointDecision<'t> {
    form: &'t OutputForm,
    /// Output of the step; null if the flow failed.
    output: Value,
    /// Text of the flow.
    text: String,
    outcome: String,
    is_decided: bool,
    failed: Vec<FailedAgent>,
    cost: DecisionCost,
}

/// Prints the decision of a task that has ended. The exit status says whether the agents decided.
///
/// # Errors
///
/// The flow was refused because an option is wrong, or the output cannot be written.
pub(crate) async fn print(
    global: &Global,
    client: &mut Client,
    rule: &str,
    snapshot: &TaskStateSnapshot,
    exit: Exit,
) -> anyhow::Result<Exit> {
    let id = snapshot.task.clone().unwrap_or_default();
    // Without the tree, the decision is the same, and its cost is unknown.
    let tree = client.call("hub/tasks/tree", json!({ "id": id })).await.unwrap_or_default();
    let task_json = snapshot.json_members(snapshot.last_message().as_deref(), exit);
    if task_json["metadata"]["reason"] == INVALID_FLOW {
        let why = snapshot.last_message().unwrap_or_default();
        let lines: Vec<_> = why.lines().map(without_position).collect();
        let action = format!("decide by {}", rule.replace('_', "-"));
        bail!(CommandError::usage(format!("{action}: {}", lines.join("\n"))));
    }
    let Some(decision) = JointDecision::from_task(rule, &Value::Object(task_json), exit, &tree)
    else {
        bail!("decide: no decision is called `{rule}`");
    };
    match global.format {
        Format::Json => {
            let mut shown = decision.json();
            shown.append(&mut snapshot.known());
            global.console().print_json(&Value::Object(shown))?;
        }
        Format::Pretty => {
            global.console().print(&decision.to_text(&id, global.console().columns()))?;
        }
    }
    Ok(if decision.is_decided { Exit::Done } else { Exit::TaskFailed })
}

/// Line about a flow's text without the position in it: the user typed options, and no flow.
fn without_position(line: &str) -> &str {
    match line.split_once(": ") {
        Some((at, rule)) if at.starts_with("line ") && at.contains(", column ") => rule,
        Some(_) | None => line,
    }
}

impl<'t> JointDecision<'t> {
    /// Decision of a task that has ended; none if the rule is unknown.
    fn from_task(rule: &str, task: &Value, exit: Exit, tree: &Value) -> Option<Self> {
        let form = FORMS.iter().find(|form| form.rule == rule)?;
        let artifact =
            list(&task["artifacts"]).iter().find(|artifact| artifact["artifactId"] == "output");
        let output =
            artifact.map(|artifact| artifact["parts"][0]["data"].clone()).unwrap_or_default();
        let message = text(&task["message"]).trim_end();
        let message =
            message.strip_prefix(STEP).and_then(|it| it.strip_prefix(": ")).unwrap_or(message);
        let message = message.to_owned();
        let is_done = exit == Exit::Done;
        let outcome = match output["outcome"].as_str() {
            Some(outcome) => outcome,
            None if is_done => "decided",
            None => task["metadata"]["reason"].as_str().unwrap_or(text(&task["state"])),
        };
        let is_decided = is_done
            && match outcome {
                "decided" | "agreed" | "goal" => true,
                "stable" => !output["value"].is_null(),
                _ => false,
            };
        let outcome = outcome.to_owned();
        let failed = failed_agents(form, &output, tree);
        let cost = DecisionCost::from_tree(tree);
        Some(Self { form, output, text: message, outcome, is_decided, failed, cost })
    }

    fn json(&self) -> Map<String, Value> {
        let failed = self.failed.iter();
        let failed = failed.map(|it| json!({ "agent": it.agent, "reason": it.reason }));
        let json = json!({
            "rule": self.form.rule,
            "decided": self.is_decided,
            "outcome": self.outcome,
            "decision": self.output,
            "text": self.text,
            "failed": failed.collect::<Vec<_>>(),
            "tasks": self.cost.tasks,
            "tokens": self.cost.tokens,
            "costUsd": self.cost.usd,
        });
        json.as_object().cloned().unwrap_or_default()
    }

    /// First line: the decision, or the reason why the agents did not decide.
    fn head(&self) -> String {
        let of = |name: &str| cell_text(&self.output[name]);
        if self.output.is_null() {
            return format!("no decision: {}", fold(&self.outcome));
        }
        match self.form.rule {
            "auction" => format!(
                "decided: {} does it; the price is {} {}",
                of("winner"),
                of("price"),
                of("unit")
            ),
            "contract_net" => {
                let chosen = list(&self.output["contractors"]).iter();
                let chosen = chosen.filter(|it| it["state"] == "completed");
                let chosen: Vec<_> = chosen.map(|it| cell_text(&it["agent"])).collect();
                format!("decided: {} did it", chosen.join(", "))
            }
            "election" => format!("decided: {} leads in term {}", of("leader"), of("term")),
            "negotiation" if self.is_decided => {
                let accepted: Vec<_> =
                    list(&self.output["accepted"]).iter().map(cell_text).collect();
                let (proposal, by) = (of("proposals"), of("by"));
                let accepted = accepted.join(", ");
                format!("decided: {accepted} accept proposal {proposal} of {by}")
            }
            _ => fold(self.text.lines().next().unwrap_or(&self.outcome)),
        }
    }

    /// Text for people. An agent's words are within cells and indented lines, or come last, so that
    /// they cannot imitate the hub's lines.
    fn to_text(&self, task: &str, columns: Option<usize>) -> Text {
        let mut all = Text::from(format!("{}\n", self.head()));
        for (choice, count) in self.output["tally"].as_object().into_iter().flatten() {
            all.append(format!("    {}: {}\n", fold(choice), cell_text(count)).into());
        }
        all.append(Text::styled(FAINT, format!("{}\n", self.cost.line(task))));
        let answers = list(&self.output[self.form.answers]);
        if !answers.is_empty() {
            let mut table = Table::new(self.form.columns.iter().map(|(header, _)| *header));
            for answer in answers {
                let cells =
                    self.form.columns.iter().map(|(_, name)| cell_text(&answer[*name]).into());
                table.row(cells.collect::<Vec<Cell>>());
                let reason = fold(text(&answer[self.form.reason]));
                if !reason.is_empty() {
                    table.add_note(cut(&reason, MAX_REASON));
                }
            }
            all.append("\n".into());
            all.append(table.text(columns));
        }
        for FailedAgent { agent, reason } in &self.failed {
            let reason = cut(&fold(reason), MAX_REASON);
            all.append(format!("not counted: {}: {reason}\n", fold(agent)).into());
        }
        if self.output["weights"].is_object() {
            let then = format!("once you know: a2a-hub record confirm {task} CHOICE\n");
            all.append(Text::styled(FAINT, then));
        }
        let has_more = self.form.has_answer || self.output.is_null();
        if has_more && !self.text.is_empty() {
            all.append(format!("\n{}\n", self.text).into());
        }
        all
    }
}

/// Value in a cell.
fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => fold(text),
        // Whole numbers, also those that were counted as fractions.
        Value::Number(number) => match number.as_f64() {
            Some(number) => number.to_string(),
            None => number.to_string(),
        },
        Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Agents without an answer, or whose work failed: those that the output names, or else those whose
/// tasks failed.
fn failed_agents(form: &OutputForm, output: &Value, tree: &Value) -> Vec<FailedAgent> {
    let of = |agent: &Value, reason: &str| {
        let (agent, reason) = (text(agent).to_owned(), reason.to_owned());
        FailedAgent { agent, reason }
    };
    let named = form.failed.iter().flat_map(|name| list(&output[*name]));
    let mut failed: Vec<_> = named.map(|it| of(&it["agent"], text(&it["reason"]))).collect();
    let contractors = list(&output["contractors"]).iter().filter(|it| it["state"] == "failed");
    failed.extend(contractors.map(|it| of(&it["agent"], text(&it["text"]))));
    if form.failed.is_empty() || output.is_null() {
        let ended = list(&tree["tasks"]).iter().skip(1);
        let ended =
            ended.filter(|it| ["failed", "rejected", "canceled"].contains(&text(&it["state"])));
        failed.extend(
            ended.map(|it| of(&it["agentId"], it["reason"].as_str().unwrap_or(text(&it["state"])))),
        );
    }
    failed
}

impl DecisionCost {
    fn from_tree(tree: &Value) -> Self {
        let tasks = list(&tree["tasks"]);
        Self {
            tasks: tasks.len().saturating_sub(1),
            tokens: tasks.iter().filter_map(|it| it["tokens"].as_u64()).sum(),
            usd: tasks.iter().filter_map(|it| it["costUsd"].as_f64()).sum(),
            is_cut: tree["cut"] == true,
        }
    }

    /// Line about all tasks, with the command that lists them.
    fn line(&self, task: &str) -> String {
        let prefix = if self.is_cut { "at least " } else { "" };
        let tasks = if self.tasks == 1 { "task" } else { "tasks" };
        let mut line = format!("{prefix}{} {tasks}", self.tasks);
        if self.tokens > 0 {
            line.push_str(&format!(", {} tokens", self.tokens));
        }
        if self.usd > 0.0 {
            line.push_str(&format!(", ${:.4}", self.usd));
        }
        format!("{line}; a2a-hub task tree {}", shell_word(task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(
        rule: &str,
        output: Value,
        said: &str,
        exit: Exit,
        reason: &str,
    ) -> JointDecision<'static> {
        let output = Some(output).filter(|output| !output.is_null());
        let made = output.map(|output| {
            json!({ "artifactId": "output", "parts": [{ "kind": "data", "data": output }] })
        });
        let artifacts: Vec<_> = made.into_iter().collect();
        let task = json!({ "artifacts": artifacts, "message": said, "state": "failed",
            "metadata": { "reason": reason } });
        let task_of = |agent: &str, state: &str| {
            json!({ "id": "c", "agentId": agent, "state": state, "reason": "quota", "tokens": 50,
                "costUsd": 0.01 })
        };
        let tree = json!({ "tasks": [{ "id": "t", "tokens": 0, "costUsd": 0.0 },
            task_of("a", "completed"), task_of("b", "failed")] });
        JointDecision::from_task(rule, &task, exit, &tree).unwrap()
    }

    #[test]
    fn vote_shows_ballots_and_cost() {
        let output = json!({
            "outcome": "decided", "choice": "yes", "tally": { "yes": 2, "no": 1 },
            "ballots": [
                { "agent": "a", "choice": "yes", "confidence": 0.9, "reason": "it\nis \u{1b}[2Jright" },
                { "agent": "c", "choice": "no", "confidence": 1, "reason": "" },
            ],
            "failed": [{ "agent": "b", "reason": "no tokens\nleft" }],
        });
        let said = "decided: yes\nyes (2): a\nno (1): c";
        let decision = decision("vote", output, said, Exit::Done, "");
        assert!(decision.is_decided);
        let look = a2a_hub_terminal::text::RenderOptions { cleaned: true, coloured: false };
        let shown = decision.to_text("t", Some(80)).render(look);
        assert!(!shown.contains('\u{1b}'));
        insta::assert_snapshot!(shown);
        insta::assert_snapshot!(Value::Object(decision.json()));
    }

    #[test]
    fn agent_text_comes_after_hub_lines() {
        let output = json!({ "winner": "b", "price": 20, "unit": "cents",
            "bids": [{ "agent": "b", "bid": 10, "reason": "fast" }, { "agent": "a", "bid": 20, "reason": "" }],
            "without": [{ "agent": "c", "reason": "passed" }], "failed": [] });
        let said = "It is built.\ndecided: a does it";
        let decision = decision("auction", output, said, Exit::Done, "");
        insta::assert_snapshot!(decision.to_text("t", Some(80)).words());
    }

    #[test]
    fn only_decisions_are_decided() {
        let is = |rule, output, exit| decision(rule, output, "x", exit, "no_winner").is_decided;
        for (rule, output, expected) in [
            ("vote", json!({ "outcome": "tie" }), false),
            ("vote", json!({ "outcome": "no_quorum" }), false),
            ("vote", json!({ "outcome": "no_majority" }), false),
            ("delphi", json!({ "outcome": "stable", "value": 4 }), true),
            ("delphi", json!({ "outcome": "stable", "value": null }), false),
            ("delphi", json!({ "outcome": "capped", "value": 4 }), false),
            ("negotiation", json!({ "outcome": "agreed" }), true),
            ("negotiation", json!({ "outcome": "cap" }), false),
            ("blackboard", json!({ "outcome": "goal" }), true),
            ("blackboard", json!({ "outcome": "quiescent" }), false),
            ("election", json!({ "leader": "a" }), true),
        ] {
            assert_eq!(is(rule, output.clone(), Exit::Done), expected, "{rule} {output}");
            assert!(!is(rule, output, Exit::TaskFailed), "{rule}");
        }
    }

    #[test]
    fn failed_flow_names_agents_without_answer() {
        let said = "decide: nobody won the auction\nb: no tokens left";
        let decision = decision("auction", Value::Null, said, Exit::TaskFailed, "no_winner");
        insta::assert_snapshot!(decision.to_text("t", None).words(), @r"
        no decision: no_winner
        2 tasks, 100 tokens, $0.0200; a2a-hub task tree t
        not counted: b: quota

        nobody won the auction
        b: no tokens left
        ");
    }

    #[test]
    fn position_in_flow_is_left_out() {
        let line = "line 6, column 9: `vote`: `choices` is a list of 2 to 32 texts";
        assert_eq!(without_position(line), "`vote`: `choices` is a list of 2 to 32 texts");
        assert_eq!(without_position("no position: here"), "no position: here");
    }
}
