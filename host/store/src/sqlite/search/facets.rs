//! Words of the index that stand for filters, and the full-text query with them.

use crate::sqlite::context_memory::key;
use a2a_hub_core::search::{SearchTerm, SearchTerms};
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TenantId},
    operation::SearchQuery,
};
use std::fmt::Write as _;

/// Longest value of a facet in bytes. A longer one is compared with the task itself.
const MAX_FACET: usize = 128;

/// Facets of a task, as one text.
pub(in crate::sqlite) fn of_task(agent: &AgentId, context: &ContextId) -> String {
    let facets = [of_agent(agent), of_tenant(context.tenant()), of_context(context)];
    facets.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn of_agent(agent: &AgentId) -> Option<String> {
    facet('a', agent.as_str())
}

fn of_tenant(tenant: &TenantId) -> Option<String> {
    facet('t', tenant.as_str())
}

fn of_context(context: &ContextId) -> Option<String> {
    facet('c', &key::key(context))
}

/// Facet of a value: a word that holds it in hexadecimal digits, so that the tokenizer leaves it
/// whole.
fn facet(kind: char, value: &str) -> Option<String> {
    if value.len() > MAX_FACET {
        return None;
    }
    let mut word = String::from(kind);
    for byte in value.bytes() {
        let _ = write!(word, "{byte:02x}");
    }
    Some(word)
}

/// Query in the language of FTS5. Each term is quoted, so that it is a text whatever it contains.
pub(in crate::sqlite) fn match_expression(terms: &SearchTerms, query: &SearchQuery) -> String {
    let quoted = |term: &SearchTerm| {
        let text = term.text.replace('"', "\"\"");
        format!("\"{text}\"{}", if term.is_prefix { " *" } else { "" })
    };
    let terms: Vec<_> = terms.terms().iter().map(quoted).collect();
    let mut expression = format!("{{requests answers}} : ({})", terms.join(" AND "));
    let facets = [
        query.agent.as_ref().and_then(of_agent),
        query.tenant.as_ref().and_then(of_tenant),
        query.context.as_ref().and_then(of_context),
    ];
    for facet in facets.into_iter().flatten() {
        let _ = write!(expression, " AND facets : \"{facet}\"");
    }
    expression
}
