//! Cache of compiled input schemas, one for each skill.

use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    card::{InputSchema, Violation},
    error::{A2aError, ErrorKind},
    id::AgentId,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::{collections::HashMap, sync::Arc};

/// Maximum number of cached schemas, each typically a few kilobytes and at most some megabytes.
const MAX_CACHED: usize = 64;

/// Latest compiled schema of each skill. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct InputSchemas(Arc<Mutex<HashMap<(AgentId, String), CachedSchema>>>);

/// Schema from the card, and its compiled form; `None` if the schema is unusable.
#[derive(Clone)]
struct CachedSchema {
    schema: Arc<Value>,
    compiled: Option<Arc<InputSchema>>,
}

impl InputSchemas {
    /// Validates an input against a skill's schema in its card. An unusable schema, which only a
    /// remote agent's card can contain, accepts everything; the agent validates the input itself.
    pub(crate) async fn violations(
        &self,
        (agent, skill): (&AgentId, &str),
        schema: &Value,
        input: &Map<String, Value>,
    ) -> Result<Vec<Violation>, A2aError> {
        let key = (agent.clone(), skill.to_owned());
        let known = self.0.lock().get(&key).filter(|cached| *cached.schema == *schema).cloned();
        let cached = match known {
            Some(known) => known,
            None => {
                let schema = Arc::new(schema.clone());
                let read = Arc::clone(&schema);
                let compiled = on_the_side(move || InputSchema::read(&read)).await?;
                let log_failure = |why| tracing::warn!(%agent, skill, %why, "schema of a skill ignored, its inputs are not checked");
                let compiled = compiled.map(Arc::new).map_err(log_failure).ok();
                let cached = CachedSchema { schema, compiled };
                self.cache(key, cached.clone());
                cached
            }
        };
        let Some(compiled) = cached.compiled else { return Ok(Vec::new()) };
        let input = Value::Object(input.clone());
        on_the_side(move || compiled.violations(&input)).await
    }

    fn cache(&self, key: (AgentId, String), cached: CachedSchema) {
        let mut all = self.0.lock();
        if all.len() >= MAX_CACHED && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, cached);
    }
}

/// Runs work of up to a second on a blocking thread, so that it does not delay other requests.
async fn on_the_side<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, A2aError> {
    run_blocking(work).await.map_err(|why| {
        tracing::error!(%why, "cannot check an input");
        A2aError::new(
            ErrorKind::Internal,
            "the input could not be checked against the skill's schema",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn schema_cache_follows_card_and_skips_unusable() {
        let schemas = InputSchemas::default();
        let agent = AgentId::parse("a").unwrap();
        let told = async |skill: &str, schema: Value| {
            let input = json!({ "n": 1 });
            let of = (&agent, skill);
            schemas.violations(of, &schema, input.as_object().unwrap()).await.unwrap().len()
        };
        let numbers = json!({ "properties": { "n": { "type": "number" } } });
        let texts = json!({ "properties": { "n": { "type": "string" } } });
        assert_eq!(told("s", numbers.clone()).await, 0);
        assert_eq!(told("s", texts.clone()).await, 1);
        assert_eq!(told("s", numbers).await, 0);
        assert_eq!(told("s", json!({ "$ref": "https://example.com/" })).await, 0);
        for n in 0..2 * MAX_CACHED {
            assert_eq!(told(&n.to_string(), texts.clone()).await, 1);
        }
        assert!(schemas.0.lock().len() <= MAX_CACHED);
    }
}
