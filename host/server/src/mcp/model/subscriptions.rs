//! Resources that the client of a session subscribed to.

use crate::mcp::model::resources;
use a2a_hub_protocol::id::TaskId;
use parking_lot::Mutex;
use rmcp::{ErrorData, model::SubscriptionFilter};
use std::{collections::BTreeMap, sync::Arc};

/// Maximum number of subscriptions of a session.
const MAX_SUBSCRIPTIONS: usize = 256;

/// Subscribed URIs with their tasks. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<BTreeMap<String, TaskId>>>);

impl Subscriptions {
    /// Subscriptions of a request, as far as they name resources of the hub.
    pub(crate) fn from_filter(filter: &SubscriptionFilter) -> Self {
        let uris = filter.resource_subscriptions.iter().flatten().take(MAX_SUBSCRIPTIONS);
        let named = uris.filter_map(|uri| Some((uri.clone(), resources::read_uri(uri)?.task)));
        Self(Arc::new(Mutex::new(named.collect())))
    }

    /// Adds a subscription.
    pub(crate) fn add(&self, uri: String, task: TaskId) -> Result<(), ErrorData> {
        let mut all = self.0.lock();
        if all.len() >= MAX_SUBSCRIPTIONS && !all.contains_key(&uri) {
            let why = format!(
                "this session has {MAX_SUBSCRIPTIONS} subscriptions, and no more are allowed; end \
                 one by `resources/unsubscribe`"
            );
            return Err(ErrorData::invalid_params(why, None));
        }
        all.insert(uri, task);
        Ok(())
    }

    /// Ends a subscription, if it exists.
    pub(crate) fn remove(&self, uri: &str) {
        self.0.lock().remove(uri);
    }

    /// Subscribed URIs of a task, or all of them.
    pub(crate) fn uris(&self, task: Option<&TaskId>) -> Vec<String> {
        let all = self.0.lock();
        let of_task = all.iter().filter(|(_, of)| task.is_none_or(|task| task == *of));
        of_task.map(|(uri, _)| uri.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_are_found_by_task_and_bounded() {
        let all = Subscriptions::default();
        for n in 0..MAX_SUBSCRIPTIONS {
            all.add(format!("u{n}"), TaskId::new(format!("t{}", n % 2))).unwrap();
        }
        assert_eq!(all.uris(Some(&TaskId::new("t1"))).len(), MAX_SUBSCRIPTIONS / 2);
        assert!(all.add("one more".to_owned(), TaskId::new("t")).is_err());
        all.add("u1".to_owned(), TaskId::new("t1")).unwrap();
        all.remove("u1");
        all.remove("none");
        assert_eq!(all.uris(None).len(), MAX_SUBSCRIPTIONS - 1);
    }

    #[test]
    fn filter_names_resources_of_hub_only() {
        let mut filter = SubscriptionFilter::new();
        let uris = ["a2a-hub://tasks/t/artifacts/a", "file:///etc/passwd"];
        filter.resource_subscriptions = Some(uris.map(str::to_owned).to_vec());
        assert_eq!(Subscriptions::from_filter(&filter).uris(None), uris[..1]);
    }
}
