//! Words of the index that stand for filters, and the full-text query with them.

use crate::sqlite::context_memory::key;
use a2a_hub_core::search::{SearchTerm, SearchTerms};
use a2a_hub_protocol::{
    id::{AgentId, ContextId, TenantId},
    operation::SearchQuery,
};
use std::{collections::HashMap, fmt::Write as _};

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

/// Words of the index that begin with a prefix, by the prefix. A prefix with too many words has
/// none.
pub(in crate::sqlite) type PrefixWords = HashMap<String, Vec<String>>;

/// Beginning of a word that the index can list: the tokenizer changes no more than its case.
pub(in crate::sqlite) fn plain_prefix(term: &SearchTerm) -> Option<String> {
    let is_plain = term.is_prefix && term.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_plain && !term.text.is_empty()).then(|| term.text.to_ascii_lowercase())
}

/// Query in the language of FTS5. Each term is quoted, so that it is a text whatever it contains.
///
/// For a prefix, FTS5 merges the lists of all its words before it returns the first task, which
/// takes 20 ms for 100,000 tasks. So the words themselves stand in place of a prefix that has few.
pub(in crate::sqlite) fn match_expression(
    terms: &SearchTerms,
    words: &PrefixWords,
    query: &SearchQuery,
) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let written = |term: &SearchTerm| {
        let words = plain_prefix(term).and_then(|prefix| words.get(&prefix));
        match words.filter(|words| !words.is_empty()) {
            Some(words) => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                format!("({})", words.join(" OR "))
            }
            None => quoted(&term.text) + if term.is_prefix { " *" } else { "" },
        }
    };
    let terms: Vec<_> = terms.terms().iter().map(written).collect();
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
