//! Form that an agent sends with its question. MCP and ACP show the same forms.

use a2a_hub_protocol::{question::QuestionKind, task::Task};
use a2a_hub_rpc::question_view;
use rmcp::model::ElicitationSchema;

/// Schema of the agent's form, if it is one of MCP. A permission has none: its choices are those of
/// the hub. Neither has a login: a form must not ask for passwords or keys.
pub(crate) fn agent_form(task: &Task) -> Option<ElicitationSchema> {
    let form =
        question_view::form(task).filter(|_| question_view::kind(task) == QuestionKind::Input)?;
    ElicitationSchema::from_json_schema(form.clone()).ok()
}
