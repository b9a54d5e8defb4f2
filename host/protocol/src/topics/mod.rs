//! Publish/subscribe: names and patterns of topics, messages and their limits, retention, and the
//! requests for them with their answers, also as tools of a model. No I/O and no clock; the store
//! keeps the messages.

mod message;
mod name;
mod request;
mod retention;
mod tools;

pub use message::{MAX_BODY, TopicBody, TopicBodyError, TopicMessage, TopicSource};
pub use name::{TopicName, TopicNameError, TopicPattern};
pub use request::{
    CursorInfo, CursorName, DeleteParams, Deleted, MAX_READ, MAX_WAIT_MS, PublishParams,
    PublishedMessage, ReadParams, TopicAnswer, TopicGap, TopicInfo, TopicList, TopicPage,
    TopicRequest, TopicStart,
};
pub use retention::{RetentionLimit, TopicRules};
pub use tools::{TopicTool, topic_answer, topic_call, topic_tools};
