//! Updates of the session while the prompt is answered: text, tools, the plan and usage.

use serde_json::Value;

use super::answer::NewMessage;
use super::content::Content;
use super::tool::ToolCall;
use super::{Acp, Speaker};
use crate::cli::{Action, context};
use crate::foreign;

impl<S: Speaker> Acp<S> {
    pub(super) fn update(&mut self, update: &Value) -> Vec<Action> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => self.chunk(update),
            "agent_thought_chunk" if self.thinking => Vec::new(),
            "agent_thought_chunk" => {
                self.thinking = true;
                vec![Action::Say("thinking".into())]
            }
            "tool_call" | "tool_call_update" => {
                self.thinking = false;
                self.tool(update).update(update)
            }
            "plan" => self.plan.update(&update["entries"], "content").into_iter().collect(),
            "usage_update" => {
                if update["cost"]["currency"] == "USD" {
                    self.cost = foreign::number(&update["cost"]["amount"]).or(self.cost);
                }
                let size = ["used", "size"].map(|member| foreign::number(&update[member]));
                self.context = context(size[0], size[1]).or_else(|| self.context.take());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<Action> {
        let Content { text, others } = Content::new(&update["content"]);
        let id = foreign::text(&update["messageId"]);
        let mut actions = match text {
            Some(text) if !self.speaker.is_remark(&text) => self.text(id.as_deref(), &text),
            Some(_) | None => Vec::new(),
        };
        for other in others {
            self.thinking = false;
            match other {
                Ok(attached) => {
                    let artifact = attached.artifact(self.attached);
                    self.attached += 1;
                    actions.extend(artifact.map(|it| Action::Attach(Box::new(it))));
                }
                Err(why) => actions.push(Action::Say(format!("{} {why}", self.name()))),
            }
        }
        actions
    }

    /// Adds text to the message with this id. The text of an earlier message is not the answer; it
    /// becomes a status, since the next message replaces it.
    fn text(&mut self, id: Option<&str>, text: &str) -> Vec<Action> {
        self.thinking = false;
        let mut actions = Vec::new();
        if let Some(NewMessage { previous }) = self.answer.begin(id) {
            self.lines.end_of_message();
            if !previous.trim().is_empty() {
                actions.push(Action::Say(previous));
            }
            actions.push(Action::Restart);
        }
        let text = self.lines.chunk(text);
        self.answer.push(&text);
        actions.push(Action::Delta(text));
        actions
    }

    /// Tool call that an update or a question is about. One that begins ends a message without an
    /// id. Some programs give a later call the id of one that has ended.
    pub(super) fn tool(&mut self, call: &Value) -> &mut ToolCall {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let is_ended = matches!(call["status"].as_str(), Some("completed" | "failed"));
        let begins = call["sessionUpdate"] == "tool_call" && !is_ended;
        let known = self.tools.get(id);
        if known.is_none_or(|known| begins && known.is_over()) {
            self.answer.end_message();
            self.tools.insert(id.to_owned(), ToolCall::default());
        }
        self.tools.entry(id.to_owned()).or_default()
    }
}
