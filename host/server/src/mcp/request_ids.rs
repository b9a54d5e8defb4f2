//! The JSON-RPC ids of one client's requests: an id that is in use is refused to a second request, whose answer would be taken for
//! the first one's.

use std::{
    collections::{HashSet, VecDeque},
    hash::Hash,
};

/// How many requests of a client may be without their answer.
pub(super) const MAX_REQUESTS: usize = 1_024;

/// The ids in use.
#[derive(Debug)]
pub(super) struct RequestIds<I> {
    /// Of requests that are under way, and of those whose client left before the answer.
    unanswered: HashSet<I>,
    /// Of requests that were cancelled last, oldest first: they are not answered, and may still end.
    cancelled: VecDeque<I>,
}

/// Why a request is not let in.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// Its id is that of another one.
    IdInUse,
    /// So many wait already.
    TooMany(usize),
}

impl<I> Default for RequestIds<I> {
    fn default() -> Self {
        Self { unanswered: HashSet::new(), cancelled: VecDeque::new() }
    }
}

impl<I: Eq + Hash + Clone> RequestIds<I> {
    /// A request with this id begins.
    pub(super) fn begin(&mut self, id: &I) -> Result<(), Refused> {
        if self.unanswered.contains(id) || self.cancelled.contains(id) {
            return Err(Refused::IdInUse);
        }
        if self.unanswered.len() >= MAX_REQUESTS {
            return Err(Refused::TooMany(MAX_REQUESTS));
        }
        self.unanswered.insert(id.clone());
        Ok(())
    }

    /// The request with this id is answered.
    pub(super) fn answered(&mut self, id: &I) {
        self.unanswered.remove(id);
    }

    /// The request with this id is cancelled, and gets no answer.
    pub(super) fn cancelled(&mut self, id: &I) {
        if self.unanswered.remove(id) {
            if self.cancelled.len() >= MAX_REQUESTS {
                self.cancelled.pop_front();
            }
            self.cancelled.push_back(id.clone());
        }
    }
}

impl Refused {
    /// The reason, for the client.
    pub(super) fn why(&self) -> String {
        match self {
            Self::IdInUse => {
                "the `id` is that of another request of this session; give each its own".to_owned()
            }
            Self::TooMany(most) => format!(
                "{most} requests of this session have no answer yet; wait for one, or begin another session"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_free_once_its_request_is_answered() {
        let mut ids = RequestIds::default();
        ids.begin(&7).unwrap();
        assert_eq!(ids.begin(&7), Err(Refused::IdInUse));
        ids.begin(&8).unwrap();
        ids.answered(&7);
        ids.begin(&7).unwrap();
    }

    #[test]
    fn cancelled_ids_take_nobodys_place() {
        let mut ids = RequestIds::default();
        for id in 0..3 * MAX_REQUESTS {
            ids.begin(&id).unwrap();
            ids.cancelled(&id);
            assert_eq!(ids.begin(&id), Err(Refused::IdInUse), "its request may not have ended");
        }
        for id in 0..MAX_REQUESTS {
            ids.begin(&id).unwrap();
        }
        let one_more = 5 * MAX_REQUESTS;
        assert_eq!(ids.begin(&one_more), Err(Refused::TooMany(MAX_REQUESTS)));
    }
}
