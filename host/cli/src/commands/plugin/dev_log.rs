//! Live report for the developer of one agent: the hub's events, the agent's tasks, denied
//! capabilities and log lines.

use crate::{
    Global,
    client::hub_client::Client,
    commands::logs::LogReader,
    log_files::LOG_FILE,
    ui::{
        render::{list, parts_text, text},
        text::{FAINT, PLAIN, Text, style_of},
        width::one_line,
    },
};
use a2a_hub_authoring::Component;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_terminal::log_line::line_text;
use serde_json::{Value, json};

/// Number of characters of a task's id that are shown.
const SHORT: usize = 8;

/// Report on one agent.
pub(super) struct DevLog<'a> {
    global: &'a Global,
    agent: &'a AgentId,
    /// Subscription to the hub's events; `None` while no hub runs.
    events: Option<Client>,
    log: Option<LogReader>,
    /// Incomplete last line of the log.
    line: String,
    /// Digest of the latest build that was handed to the hub.
    built: Option<String>,
    /// Digest of the build that was last reported as being in use.
    in_use: Option<String>,
}

impl<'a> DevLog<'a> {
    /// Subscribes to the hub's events.
    ///
    /// # Errors
    /// If no hub runs.
    pub(super) async fn open(global: &'a Global, agent: &'a AgentId) -> anyhow::Result<Self> {
        let (line, built, in_use) = (String::new(), None, None);
        let mut feed = Self { global, agent, events: None, log: None, line, built, in_use };
        feed.listen().await?;
        let log = LogReader::open(global.data_dir()?.join(LOG_FILE)).ok();
        feed.log = log;
        if let Some(log) = &mut feed.log {
            // Skips what was logged before.
            log.more()?;
        } else {
            global
                .console()
                .note("the hub runs in the foreground: its terminal shows what the agent logs");
        }
        Ok(feed)
    }

    async fn listen(&mut self) -> anyhow::Result<()> {
        let mut events = Client::connect(self.global).await?;
        events.ask("hub/events", json!({})).await?;
        self.events = Some(events);
        Ok(())
    }

    /// Subscribes again after the hub was gone, if a hub runs.
    pub(super) async fn return_to_hub(&mut self) -> anyhow::Result<()> {
        if self.events.is_none() && self.listen().await.is_ok() {
            self.print_line("hub", "the hub runs again", PLAIN_STATE)?;
        }
        Ok(())
    }

    /// Waits for the hub's next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Value, HubDisconnected> {
        let Some(events) = &mut self.events else { return std::future::pending().await };
        match events.next().await {
            Ok((_, Ok(event))) if event["kind"] != "stream-end" => Ok(event),
            Ok(_) | Err(_) => {
                self.events = None;
                Err(HubDisconnected)
            }
        }
    }

    /// Reports an event if it concerns this agent.
    pub(super) async fn report(
        &mut self,
        event: Result<Value, HubDisconnected>,
    ) -> anyhow::Result<()> {
        let Ok(event) = event else {
            return self.print_line(
                "hub",
                "the hub has stopped; this continues when it runs again (`a2a-hub start`)",
                "degraded",
            );
        };
        let file = format!("{}.wasm", self.agent);
        let is_ours = event["agentId"] == self.agent.as_str() || event["file"] == file.as_str();
        if !is_ours {
            return Ok(());
        }
        match text(&event["type"]) {
            "agent-joined" | "agent-replaced" => self.tell_of_build().await,
            "agent-left" => self.print_line("hub", "it was removed from the hub", "degraded"),
            "plugin-rejected" => self.print_line("hub", text(&event["error"]), "failed"),
            "plugin-held-back" => {
                let message = format!(
                    "its update needs approval; `a2a-hub plugin grant {} --dev` approves every \
                     build",
                    self.agent
                );
                self.print_line("hub", &message, "degraded")
            }
            "plugin-grant-changed" => self.print_line("hub", "its grant changed", PLAIN_STATE),
            "agent-health" => {
                let health = &event["health"];
                let why = text(&health["errorMessage"]);
                let words = format!("it is {} {why}", text(&health["status"]));
                self.print_line("health", words.trim(), text(&health["status"]))
            }
            "agent-breaker" => {
                let state = text(&event["breaker"]["state"]);
                self.print_line("health", &format!("its circuit breaker is {state}"), state)
            }
            "task-created" => self.task(&event, "begun", "").await,
            "task-state" => {
                let state = text(&event["state"]).to_owned();
                let status_message = self.status_message(&event).await;
                self.task(&event, &state, &status_message).await
            }
            _ => Ok(()),
        }
    }

    /// Reports that the hub registered the agent: once for each build, because a changed grant
    /// registers the same build again.
    async fn tell_of_build(&mut self) -> anyhow::Result<()> {
        let sha256 = self.serving().await;
        if sha256.is_none() || sha256 == self.in_use {
            return Ok(());
        }
        let is_latest = sha256 == self.built;
        let is_first = self.in_use.is_none();
        self.in_use = sha256;
        let message = match (is_latest, is_first) {
            (false, _) => "an earlier build is in use",
            (true, true) => "the build is in use",
            (true, false) => "the new build is in use; running tasks finish on the previous one",
        };
        let state = if is_latest { "healthy" } else { PLAIN_STATE };
        self.print_line("hub", message, state)
    }

    /// Digest of the agent's serving component.
    async fn serving(&self) -> Option<String> {
        let mut client = Client::connect(self.global).await.ok()?;
        let all = client.call("hub/plugins/list", json!({})).await.ok()?;
        let plugin = list(&all).iter().find(|it| it["agentId"] == self.agent.as_str())?;
        plugin["sha256"].as_str().map(str::to_owned)
    }

    async fn task(&self, event: &Value, state: &str, message: &str) -> anyhow::Result<()> {
        let id = text(&event["taskId"]);
        let value = json!({ "about": "task", "taskId": id, "state": state, "said": message });
        self.global.show(&value, || {
            let mut line = about("task");
            // Ids begin with their time, so their last characters distinguish them.
            let short = id.get(id.len().saturating_sub(SHORT)..).unwrap_or(id);
            line.push(FAINT, &format!("{short} "));
            line.push(style_of(state), state);
            let message = if message.is_empty() {
                String::new()
            } else {
                format!(": {}", message.trim_end())
            };
            line.push(PLAIN, &format!("{}\n", message.replace('\n', "\n         ")));
            Ok(line)
        })
    }

    /// Returns the task's status message: a question, an answer, or the reason of a failure, which
    /// names what was denied and the command that grants it.
    async fn status_message(&self, event: &Value) -> String {
        if !["input-required", "auth-required", "failed", "rejected"]
            .contains(&text(&event["state"]))
        {
            return String::new();
        }
        let task = async {
            let mut client = Client::connect(self.global).await?;
            client.call("tasks/get", json!({ "id": event["taskId"], "historyLength": 0 })).await
        };
        // The task may have been deleted in the meantime.
        let Ok(task) = task.await else { return String::new() };
        let message = parts_text(&task["status"]["message"]["parts"]);
        let reason = text(&task["metadata"]["reason"]);
        let reason = if reason.is_empty() { reason.to_owned() } else { format!("{reason}: ") };
        format!("{reason}{message}")
    }

    /// Reports the agent's new log lines.
    pub(super) fn tell_log(&mut self) -> anyhow::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        self.line.push_str(&log.more()?);
        let complete = self.line.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.line.drain(..complete).collect();
        for line in lines.lines().filter(|line| is_of(line, self.agent)) {
            let event = || serde_json::from_str::<Value>(line).unwrap_or_default();
            let value = || json!({ "about": "log", "event": event() });
            self.global.show(&value(), || {
                let mut shown = about("log");
                shown.append(line_text(line));
                shown.append("\n".into());
                Ok(shown)
            })?;
        }
        Ok(())
    }

    /// Reports one line about the agent.
    pub(super) fn print_line(&self, label: &str, message: &str, state: &str) -> anyhow::Result<()> {
        self.global.show(&json!({ "about": label, "said": message }), || {
            let mut line = about(label);
            line.push(style_of(state), &format!("{}\n", message.trim_end()));
            Ok(line)
        })
    }

    /// Reports the state of a component that was just added: what it may not do, and the command
    /// that grants it.
    pub(super) async fn report_added(
        &mut self,
        component: &Component,
        plugin: Option<&Value>,
        took: &str,
    ) -> anyhow::Result<()> {
        let Some(plugin) = plugin else { return Ok(()) };
        self.built = Some(component.sha256.clone());
        let is_in_use = plugin["sha256"] == component.sha256.as_str();
        let value = json!({ "about": "built", "sha256": component.sha256, "plugin": plugin, "inUse": is_in_use });
        self.global.show(&value, || {
            let mut shown = about("built");
            shown.push(style_of("healthy"), &format!("in {took}"));
            shown.push(PLAIN, "\n");
            if let Some(why) = plugin["error"].as_str() {
                shown.append(about("hub"));
                shown.push(style_of("failed"), &format!("{}\n", one_line(why)));
            } else if !is_in_use {
                shown.append(about("hub"));
                let compiles = "the hub compiles it; Python and JavaScript take up to 30 s";
                let serves = match plugin["joined"] == true {
                    true => ", and the previous build answers until then",
                    false => "",
                };
                shown.push(PLAIN, &format!("{compiles}{serves}\n"));
            }
            for lack in list(&plugin["notGranted"]) {
                shown.append(about("denied"));
                let action = text(&lack["what"]);
                shown.push(style_of("degraded"), &format!("it may not {}\n", one_line(action)));
                if let Some(command) = lack["command"].as_str() {
                    shown.push(PLAIN, &format!("         allow it with: {command} --dev\n"));
                }
            }
            Ok(shown)
        })?;
        // If it is in use already, its event is not waited for.
        if is_in_use { self.tell_of_build().await } else { Ok(()) }
    }
}

/// State without a colour.
const PLAIN_STATE: &str = "";

/// The hub closed the connection.
#[derive(Debug)]
pub(super) struct HubDisconnected;

/// Prefix of a line.
fn about(label: &str) -> Text {
    Text::styled(FAINT, format!("{label:<7}  "))
}

/// True for a log line of the agent itself, or of an error; the hub's other lines about the agent
/// also arrive as events.
fn is_of(line: &str, agent: &AgentId) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(line) else { return false };
    let is_about = event["agent"] == agent.as_str() || event["span"]["agent"] == agent.as_str();
    let is_of_a_task = event["task"].is_string() || event["span"]["task"].is_string();
    is_about && (is_of_a_task || event["level"] == "ERROR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_log_lines_are_reported() {
        let notes = AgentId::parse("notes").unwrap();
        for (line, wanted) in [
            (r#"{"message":"x","agent":"notes","task":"t"}"#, true),
            (r#"{"message":"x","agent":"notes","level":"ERROR"}"#, true),
            (r#"{"message":"another component goes on","agent":"notes","level":"WARN"}"#, false),
            (r#"{"message":"x","span":{"agent":"notes","task":"t"}}"#, true),
            (r#"{"message":"notes","agent":"other","task":"t"}"#, false),
            ("notes", false),
        ] {
            assert_eq!(is_of(line, &notes), wanted, "{line}");
        }
        assert_eq!(about("log").words(), "log      ");
    }
}
