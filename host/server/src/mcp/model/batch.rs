//! Batches of 2025-03-26 on a connection: the responses to the requests of a batch are sent
//! together, as one array, once all are there.

use rmcp::model::RequestId;
use serde_json::Value;
use std::collections::HashSet;

/// Unfinished batches of a connection.
#[derive(Debug, Default)]
pub(crate) struct Batches(Vec<Batch>);

#[derive(Debug)]
struct Batch {
    /// Ids of the requests without a response.
    open: HashSet<RequestId>,
    responses: Vec<Value>,
}

impl Batches {
    /// Begins a batch with these requests and the responses that it has already. Returns the
    /// responses if no request is left.
    pub(crate) fn begin(
        &mut self,
        open: HashSet<RequestId>,
        responses: Vec<Value>,
    ) -> Option<Value> {
        self.0.push(Batch { open, responses });
        self.finished()
    }

    /// True if the request belongs to a batch.
    pub(crate) fn has(&self, id: &RequestId) -> bool {
        self.0.iter().any(|batch| batch.open.contains(id))
    }

    /// Adds the response to a request, or `None` for one that was cancelled, and returns the
    /// responses if the batch is complete.
    pub(crate) fn answered(&mut self, id: &RequestId, response: Option<Value>) -> Option<Value> {
        let batch = self.0.iter_mut().find(|batch| batch.open.contains(id))?;
        batch.open.remove(id);
        batch.responses.extend(response);
        self.finished()
    }

    fn finished(&mut self) -> Option<Value> {
        let at = self.0.iter().position(|batch| batch.open.is_empty())?;
        let responses = self.0.swap_remove(at).responses;
        // JSON-RPC 2.0, section 6: a batch of notifications has no response at all.
        (!responses.is_empty()).then_some(Value::Array(responses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(ids: &[i64]) -> HashSet<RequestId> {
        ids.iter().copied().map(RequestId::Number).collect()
    }

    #[test]
    fn batch_is_answered_once_all_are() {
        let mut batches = Batches::default();
        assert_eq!(batches.begin(ids(&[1, 2]), vec![json!("refused")]), None);
        assert_eq!(batches.begin(ids(&[3]), Vec::new()), None);
        assert!(batches.has(&RequestId::Number(3)) && !batches.has(&RequestId::Number(4)));
        assert_eq!(batches.answered(&RequestId::Number(2), Some(json!("b"))), None);
        assert_eq!(batches.answered(&RequestId::Number(3), Some(json!("c"))), Some(json!(["c"])));
        assert_eq!(batches.answered(&RequestId::Number(3), Some(json!("c"))), None);
        let all = batches.answered(&RequestId::Number(1), Some(json!("a")));
        assert_eq!(all, Some(json!(["refused", "b", "a"])));
    }

    #[test]
    fn cancelled_request_ends_batch_without_response() {
        let mut batches = Batches::default();
        assert_eq!(batches.begin(ids(&[1]), Vec::new()), None);
        assert_eq!(batches.answered(&RequestId::Number(1), None), None);
        assert_eq!(batches.begin(HashSet::new(), Vec::new()), None);
        assert_eq!(batches.begin(HashSet::new(), vec![json!(1)]), Some(json!([1])));
    }
}
