//! Topics of a hub: publishing, and reading with a wait for the next message.

use crate::schedules::WallClock;
use a2a_hub_protocol::id::TenantId;
use a2a_hub_protocol::topics::{
    CursorName, Deleted, ReadParams, TopicAnswer, TopicName, TopicPage, TopicRequest, TopicRules,
    TopicSource, TopicStart,
};
use a2a_hub_store::{CursorUse, NewTopicMessage, StorageError, TopicQuery, TopicStore};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::broadcast::{self, Receiver, Sender, error::RecvError},
    time::{Instant, timeout_at},
};

/// Most contents of one answer, in bytes; one message may be larger than that by itself.
const MAX_PAGE: usize = 1 << 20;

/// Number of publications that a waiting reader may be behind; it reads the store then.
const MAX_LAG: usize = 1_024;

/// Pause between two removals of old messages by readers.
const SWEEP: Duration = Duration::from_mins(1);

/// Topics of a hub.
pub struct Topics {
    store: Arc<dyn TopicStore>,
    clock: WallClock,
    rules: Mutex<TopicRules>,
    /// Wakes waiting readers; none once the hub stops.
    publications: Mutex<Option<Sender<Publication>>>,
    next_sweep: Mutex<Instant>,
}

/// Publication that waiting readers hear of.
type Publication = Arc<(TenantId, TopicName)>;

/// Error of a request for topics.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// No share of the topics or cursors is left for the caller.
    #[error("{0}")]
    Full(StorageError),
    /// The topic does not exist.
    #[error("no topic is called `{0}`; `a2a-hub topic list` lists them")]
    UnknownTopic(TopicName),
    /// The cursor does not exist.
    #[error("no cursor is called `{}`; `a2a-hub topic list` lists them", .0.as_str())]
    UnknownCursor(CursorName),
    /// The store failed.
    #[error(transparent)]
    Storage(StorageError),
}

impl From<StorageError> for TopicError {
    fn from(why: StorageError) -> Self {
        match why {
            StorageError::Share(_) => Self::Full(why),
            StorageError::Unavailable(_)
            | StorageError::Conflict { .. }
            | StorageError::Illegal(_)
            | StorageError::Uncreated(_)
            | StorageError::Corrupt { .. }
            | StorageError::LogMissing { .. }
            | StorageError::DatabaseMissing { .. }
            | StorageError::LogCut { .. }
            | StorageError::Full { .. }
            | StorageError::FullOfItems { .. }
            | StorageError::Newer { .. }
            | StorageError::Locked { .. } => Self::Storage(why),
        }
    }
}

impl Topics {
    /// Creates the topics of a store.
    pub fn new(store: Arc<dyn TopicStore>, rules: TopicRules, clock: WallClock) -> Self {
        Self {
            store,
            clock,
            rules: Mutex::new(rules),
            publications: Mutex::new(Some(broadcast::channel(MAX_LAG).0)),
            next_sweep: Mutex::new(Instant::now()),
        }
    }

    /// Replaces the limits by those of a reloaded configuration.
    pub fn follow(&self, rules: TopicRules) {
        *self.rules.lock() = rules;
    }

    /// Ends all waits, now and later: the hub stops.
    pub fn close(&self) {
        *self.publications.lock() = None;
    }

    fn now_ms(&self) -> u64 {
        u64::try_from((self.clock)().as_millisecond()).unwrap_or_default()
    }

    /// Carries out a request of the caller that `source` names.
    ///
    /// # Errors
    ///
    /// See [`TopicError`]; nothing was stored then.
    pub async fn perform(
        &self,
        tenant: &TenantId,
        source: TopicSource,
        request: TopicRequest,
    ) -> Result<TopicAnswer, TopicError> {
        Ok(match request {
            TopicRequest::Publish { topic, body } => {
                let message =
                    NewTopicMessage { topic: topic.clone(), source, body, at_ms: self.now_ms() };
                let rules = *self.rules.lock();
                let stored = self.store.publish_message(tenant, message, rules).await?;
                if let Some(publications) = &*self.publications.lock() {
                    // Without readers that wait, nobody needs to know.
                    drop(publications.send(Arc::new((tenant.clone(), topic))));
                }
                TopicAnswer::Published(stored)
            }
            TopicRequest::Read(params) => {
                TopicAnswer::Page(self.read(tenant, source.publisher, params).await?)
            }
            TopicRequest::List => TopicAnswer::List(self.store.list_topics(tenant).await?),
            TopicRequest::Delete(deleted) => {
                match &deleted {
                    Deleted::Topic(topic) if !self.store.delete_topic(tenant, topic).await? => {
                        return Err(TopicError::UnknownTopic(topic.clone()));
                    }
                    Deleted::Cursor(name) if !self.store.delete_cursors(tenant, name).await? => {
                        return Err(TopicError::UnknownCursor(name.clone()));
                    }
                    Deleted::Topic(_) | Deleted::Cursor(_) => {}
                }
                TopicAnswer::Deleted(deleted)
            }
        })
    }

    /// Reads messages, and waits for one as long as the caller wants.
    async fn read(
        &self,
        tenant: &TenantId,
        owner: String,
        params: ReadParams,
    ) -> Result<TopicPage, TopicError> {
        let until = Instant::now() + Duration::from_millis(params.wait_ms);
        self.sweep().await?;
        let limit = params.limit();
        let ReadParams { pattern, after, cursor, start, .. } = params;
        // Listens before it reads, so that no publication falls in between.
        let mut publications = self.publications.lock().as_ref().map(Sender::subscribe);
        let after = match (cursor, after) {
            (Some(name), after) => {
                let (pattern, at_ms) = (pattern.clone(), self.now_ms());
                let cursor = CursorUse { owner, name, pattern, after, start, at_ms };
                self.store.use_cursor(tenant, cursor).await?
            }
            (None, Some(after)) => after,
            (None, None) => match start {
                TopicStart::New => self.store.topic_position(tenant).await?,
                TopicStart::Stored => 0,
            },
        };
        let mut query = TopicQuery { pattern, after, limit, max_bytes: MAX_PAGE };
        loop {
            let page = self.store.read_topics(tenant, query.clone()).await?;
            let Some(publications) = publications.as_mut().filter(|_| page.is_empty()) else {
                return Ok(page);
            };
            query.after = page.next;
            let concerns = |topic: &TopicName| query.pattern.matches(topic);
            match timeout_at(until, publication(publications, tenant, concerns)).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return Ok(page),
            }
        }
    }

    /// Removes old messages now and then: nobody may publish for a while.
    async fn sweep(&self) -> Result<(), StorageError> {
        let now = Instant::now();
        if *self.next_sweep.lock() > now {
            return Ok(());
        }
        *self.next_sweep.lock() = now + SWEEP;
        let before_ms = self.rules.lock().expired_before(self.now_ms());
        self.store.expire_messages(before_ms).await
    }

    /// Position of the latest message of a tenant.
    pub(crate) async fn position(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        self.store.topic_position(tenant).await
    }

    /// Messages of a tenant.
    pub(crate) async fn page(
        &self,
        tenant: &TenantId,
        query: TopicQuery,
    ) -> Result<TopicPage, StorageError> {
        self.store.read_topics(tenant, query).await
    }
}

/// Waits for a publication that concerns a reader; false if the hub stops.
async fn publication(
    publications: &mut Receiver<Publication>,
    tenant: &TenantId,
    concerns: impl Fn(&TopicName) -> bool,
) -> bool {
    loop {
        match publications.recv().await {
            Ok(new) if new.0 == *tenant && concerns(&new.1) => return true,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}
