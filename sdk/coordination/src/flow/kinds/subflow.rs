//! Steps with `flow`: a task of another flow.

use serde_json::Map;

use super::kind::{
    Attempt, AttemptValues, CallRights, KindKey, StepKind, StepReader, template_failure,
};
use crate::flow::{
    position::{KeyName as _, Table},
    program::refuse_by_name,
    row::CallFailure,
    scope::{owned, template},
    template::Template,
};

pub(super) const KEYS: &[KindKey<SubflowStep>] = &[KindKey {
    name: "flow",
    with: &["input", "fallback", "output", "inherit", "for_each", "retry"],
    parse,
}];

/// Task of a flow.
#[derive(Clone, Debug)]
pub(in crate::flow) struct SubflowStep {
    flow: String,
    /// Members of its input.
    input: Vec<(String, Template)>,
}

impl StepKind for SubflowStep {
    fn agents(&self) -> &[String] {
        std::slice::from_ref(&self.flow)
    }

    fn agent(&self, _item: usize) -> &str {
        &self.flow
    }

    fn is_delegated(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        self.flow.clone()
    }

    fn brackets(&self) -> (&'static str, &'static str) {
        ("[[", "]]")
    }

    fn attempt(&self, values: &AttemptValues<'_>) -> Result<Attempt, CallFailure> {
        let variables = (values.variables)();
        let mut members = Map::new();
        for (name, text) in &self.input {
            let text = text.render(&variables).map_err(template_failure)?;
            members.insert(name.clone(), text.into());
        }
        let (text, rights) = (String::new(), CallRights::OfStep(None));
        Ok(Attempt::Call { text, data: Some(members.into()), rights })
    }
}

fn parse(step: &mut StepReader<'_, '_, '_, '_>) -> Option<SubflowStep> {
    let StepReader { key: _, table, scope, texts, problems } = step;
    let (flow, at) = table.text("flow", problems)?;
    refuse_by_name(&flow, &at, problems);
    let members = table.get("input").and_then(|it| Table::from_value(it, "input", problems));
    let mut input = Vec::new();
    for (key, _) in members.iter().flat_map(|members| members.table) {
        let name = key.to_string_key();
        let members = members.as_ref()?;
        let Some((text, at)) = template(members, &name, problems) else { continue };
        texts.push((owned(text.names()), at, *scope));
        input.push((name, text));
    }
    Some(SubflowStep { flow, input })
}
