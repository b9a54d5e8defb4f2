//! JSON-RPC ids of a client's open requests. A second request with an id in use is refused, because
//! its response could be taken for the first one's.

use std::{
    collections::{HashSet, VecDeque},
    hash::Hash,
};

/// Maximum number of unanswered requests of a client.
pub(crate) const MAX_REQUESTS: usize = 1_024;

/// Ids in use.
#[derive(Debug)]
pub(crate) struct RequestIds<I> {
    /// Ids of running requests, and of requests whose client disconnected before the response.
    unanswered: HashSet<I>,
    /// Ids of the latest cancelled requests, oldest first. They get no response, but may still be
    /// running.
    cancelled: VecDeque<I>,
}

/// Reason for refusing a request.
#[derive(Debug, PartialEq)]
pub(crate) enum RequestIdError {
    /// Another request uses the id.
    IdInUse,
    /// The limit of unanswered requests is reached.
    TooMany(usize),
}

impl<I> Default for RequestIds<I> {
    fn default() -> Self {
        Self { unanswered: HashSet::new(), cancelled: VecDeque::new() }
    }
}

impl<I: Eq + Hash + Clone> RequestIds<I> {
    /// Registers a request.
    pub(crate) fn begin(&mut self, id: &I) -> Result<(), RequestIdError> {
        if self.unanswered.contains(id) || self.cancelled.contains(id) {
            return Err(RequestIdError::IdInUse);
        }
        if self.unanswered.len() >= MAX_REQUESTS {
            return Err(RequestIdError::TooMany(MAX_REQUESTS));
        }
        self.unanswered.insert(id.clone());
        Ok(())
    }

    /// Removes an answered request.
    pub(crate) fn answered(&mut self, id: &I) {
        self.unanswered.remove(id);
    }

    /// Marks a request as cancelled; it gets no response.
    pub(crate) fn cancelled(&mut self, id: &I) {
        if self.unanswered.remove(id) {
            if self.cancelled.len() >= MAX_REQUESTS {
                self.cancelled.pop_front();
            }
            self.cancelled.push_back(id.clone());
        }
    }
}

impl RequestIdError {
    /// Explanation for the client.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::IdInUse => {
                "the `id` is that of another request of this session; give each its own".to_owned()
            }
            Self::TooMany(max) => format!(
                "{max} requests of this session have no answer yet; wait for one, or begin another session"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_free_after_response() {
        let mut ids = RequestIds::default();
        ids.begin(&7).unwrap();
        assert_eq!(ids.begin(&7), Err(RequestIdError::IdInUse));
        ids.begin(&8).unwrap();
        ids.answered(&7);
        ids.begin(&7).unwrap();
    }

    #[test]
    fn cancelled_ids_do_not_count_as_open() {
        let mut ids = RequestIds::default();
        for id in 0..3 * MAX_REQUESTS {
            ids.begin(&id).unwrap();
            ids.cancelled(&id);
            assert_eq!(
                ids.begin(&id),
                Err(RequestIdError::IdInUse),
                "its request may not have ended"
            );
        }
        for id in 0..MAX_REQUESTS {
            ids.begin(&id).unwrap();
        }
        let one_more = 5 * MAX_REQUESTS;
        assert_eq!(ids.begin(&one_more), Err(RequestIdError::TooMany(MAX_REQUESTS)));
    }
}
