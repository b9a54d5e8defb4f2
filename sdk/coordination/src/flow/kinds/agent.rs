//! Steps with `agent`, `agents` or `skill`: a task of another agent. Several agents have one each.

use toml::Spanned;

use super::kind::{
    Attempt, AttemptValues, CallRights, KindKey, StepKind, StepReader, template_failure,
};
use crate::flow::{
    answer,
    permission::{WORDS, is_elevated},
    program::refuse_by_name,
    row::CallFailure,
    scope::{owned, template},
    template::Template,
};

/// Keys beside those of the kind.
const WITH: &[&str] =
    &["prompt", "permissions", "fallback", "output", "inherit", "for_each", "retry"];

pub(super) const KEYS: &[KindKey<AgentStep>] = &[
    KindKey { name: "agent", with: WITH, parse },
    KindKey { name: "agents", with: WITH, parse },
    KindKey { name: "skill", with: WITH, parse },
];

/// Task of an agent.
#[derive(Clone, Debug)]
pub(in crate::flow) struct AgentStep {
    /// One for each item, or one for all.
    pub(in crate::flow) agents: Vec<String>,
    pub(in crate::flow) prompt: Template,
    permissions: Option<String>,
}

impl StepKind for AgentStep {
    fn agents(&self) -> &[String] {
        &self.agents
    }

    fn agent(&self, item: usize) -> &str {
        self.agents.get(item).or(self.agents.first()).map_or("", String::as_str)
    }

    fn permissions(&self) -> Option<&str> {
        self.permissions.as_deref()
    }

    fn is_delegated(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        self.agents.join(", ")
    }

    fn progress(&self) -> String {
        self.label()
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("[", "]")
    }

    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        let mut text = self.prompt.render(&(values.variables)()).map_err(template_failure)?;
        if let Some(schema) = values.output {
            text.push_str(&answer::request(schema));
        }
        if let Some(why) = values.correction {
            text.push_str(&answer::correction(why));
        }
        let rights = CallRights::OfStep(self.permissions.clone());
        Ok(Attempt::Call { text, data: None, rights })
    }
}

fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<AgentStep> {
    let StepReader { key, table, scope, texts, problems } = step;
    let named = match *key {
        "agents" => table.texts(key, problems),
        _ => vec![table.text(key, problems)?],
    };
    for (name, at) in &named {
        refuse_by_name(name, at, problems);
    }
    let names = named.into_iter().map(|(name, _)| name);
    // An agent's name has no colon.
    let agents: Vec<_> = match *key {
        "skill" => names.map(|name| format!("skill:{name}")).collect(),
        _ => names.collect(),
    };
    let Some((prompt, at)) = template(table, "prompt", problems) else {
        if table.get("prompt").is_none() {
            problems.error(&table.at, format!("{} has a `prompt`", table.name));
        }
        return None;
    };
    texts.push((owned(prompt.names()), at, *scope));
    let permissions = table.word("permissions", &WORDS, problems);
    let is_routed = agents.iter().any(|agent| agent.contains(':'));
    if is_routed && permissions.as_deref().is_some_and(is_elevated) {
        let at = table.get("permissions").map_or(table.at.clone(), Spanned::span);
        let rule =
            "permissions above \"ask\" are for one agent: name it by `agent` in place of `skill`";
        problems.error(&at, rule);
    }
    Some(AgentStep { agents, prompt, permissions })
}
