//! Steps with `ask`: a question to the client.

use super::kind::{Attempt, AttemptValues, KindKey, StepKind, StepReader, template_failure};
use crate::flow::{
    row::CallFailure,
    scope::{owned, template},
    template::Template,
};

pub(super) const KEYS: &[KindKey<AskStep>] =
    &[KindKey { name: "ask", with: &["choices", "default"], parse }];

/// Question to the client.
#[derive(Clone, Debug)]
pub(in crate::flow) struct AskStep {
    text: Template,
    /// Answers that count; any if empty.
    pub(in crate::flow) choices: Vec<String>,
    /// Answer after the step's `timeout`.
    pub(in crate::flow) default: Option<String>,
}

impl StepKind for AskStep {
    fn calls(&self) -> bool {
        false
    }

    fn label(&self) -> String {
        "asks".to_owned()
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("{{", "}}")
    }

    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        let text = self.text.render_for_people(&(values.variables)()).map_err(template_failure)?;
        let text = match self.choices.as_slice() {
            [] => text,
            choices => format!("{text}\n({})", choices.join(" / ")),
        };
        Ok(Attempt::Ask { text })
    }
}

fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<AskStep> {
    let StepReader { key, table, scope, texts, problems } = step;
    let (text, at) = template(table, key, problems)?;
    texts.push((owned(text.names()), at, *scope));
    let choices = table.texts("choices", problems);
    let choices: Vec<_> = choices.into_iter().map(|(choice, _)| choice).collect();
    let default = table.text("default", problems);
    if let Some((default, at)) = &default
        && !choices.is_empty()
        && !choices.contains(default)
    {
        problems.error(at, format!("`default` is one of the choices {}", choices.join(", ")));
    }
    if let Some((_, at)) = &default
        && table.get("timeout").is_none()
    {
        problems.error(at, "`default` is the answer after `timeout`, which is missing");
    }
    Some(AskStep { text, choices, default: default.map(|(text, _)| text) })
}
