//! Event on its way to subscribers, with cached text: each form is serialized once, regardless of
//! the number of subscribers.

use super::Dialect;
use crate::{codec::spelled::Form, model::event::SequencedEvent};
use std::{
    fmt,
    ops::Deref,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// An event with the cached texts of its forms.
pub struct EncodedEvent {
    event: SequencedEvent,
    /// Text of each form.
    texts: [CachedText; Form::ALL.len()],
}

/// Cached text of an event in one form.
#[derive(Default)]
struct CachedText {
    /// True if the next writer caches the text. For a single subscriber, a cache would waste
    /// memory.
    should_cache: AtomicBool,
    bytes: OnceLock<Box<[u8]>>,
}

impl EncodedEvent {
    /// Creates an event for one subscriber, without caching at first.
    pub fn new(event: SequencedEvent) -> Self {
        Self { event, texts: Default::default() }
    }

    /// Creates an event for several subscribers, with caching.
    pub fn shared(event: SequencedEvent) -> Self {
        let encoded = Self::new(event);
        encoded.texts.iter().for_each(|text| text.should_cache.store(true, Ordering::Relaxed));
        encoded
    }

    /// Appends the event's text in this dialect to a buffer. Returns false for a client's own
    /// message, which is not streamed.
    pub fn write(&self, dialect: Dialect, to: &mut Vec<u8>) -> bool {
        if !Form::tells(&self.event.event) {
            return false;
        }
        let form = dialect.form();
        let Some(text) = self.texts.get(form.number()) else { return false };
        // A second writer shows that further ones may follow.
        if text.should_cache.swap(true, Ordering::Relaxed) {
            to.extend_from_slice(text.bytes.get_or_init(|| form.text(&self.event).into()));
        } else {
            form.write(&self.event, to);
        }
        true
    }
}

impl Deref for EncodedEvent {
    type Target = SequencedEvent;

    fn deref(&self) -> &SequencedEvent {
        &self.event
    }
}

impl fmt::Debug for EncodedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}

impl PartialEq for EncodedEvent {
    fn eq(&self, other: &Self) -> bool {
        self.event == other.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::protojson::tests::any_event,
        dialect::Wire,
        model::{
            event::TaskEvent,
            id::{ContextId, TaskId},
            interface::{Binding, Version},
            message::{Message, Role},
        },
    };
    use proptest::prelude::*;

    const ALL: [Dialect; 4] = [
        Dialect::Hub,
        Dialect::Official(Wire { version: Version::V1, binding: Binding::JsonRpc }),
        Dialect::Official(Wire { version: Version::V03, binding: Binding::JsonRpc }),
        Dialect::Official(Wire { version: Version::V03, binding: Binding::Rest }),
    ];

    proptest! {
        /// Each subscriber reads the same text, with and without caching.
        #[test]
        fn every_subscriber_reads_same_text(event in any_event(), is_shared: bool) {
            let heard = if is_shared { EncodedEvent::shared(event) } else { EncodedEvent::new(event) };
            for dialect in ALL {
                let expected = dialect.write_event(&heard).unwrap().to_string();
                for _ in 0..3 {
                    let mut told = b"before ".to_vec();
                    prop_assert!(heard.write(dialect, &mut told));
                    prop_assert_eq!(String::from_utf8(told).unwrap(), format!("before {expected}"));
                }
            }
        }
    }

    #[test]
    fn event_text_is_cached_for_several_subscribers() {
        let event = || SequencedEvent {
            task: TaskId::new("t"),
            context: ContextId::new("c"),
            seq: 1,
            event: TaskEvent::Reply(Message::text(Role::Agent, "hi")),
        };
        let kept = |heard: &EncodedEvent| {
            heard.texts.iter().filter(|text| text.bytes.get().is_some()).count()
        };
        let (one, many) = (EncodedEvent::new(event()), EncodedEvent::shared(event()));
        let mut text = Vec::new();
        for heard in [&one, &many] {
            heard.write(Dialect::Hub, &mut text);
        }
        assert_eq!((kept(&one), kept(&many)), (0, 1));
        let first = many.texts[1].bytes.get().unwrap().as_ptr();
        for heard in [&one, &many] {
            heard.write(Dialect::Hub, &mut text);
        }
        assert_eq!((kept(&one), kept(&many)), (1, 1), "one who asks again is kept it as well");
        assert_eq!(many.texts[1].bytes.get().unwrap().as_ptr(), first);
        let own =
            SequencedEvent { event: TaskEvent::Input(Message::text(Role::User, "x")), ..event() };
        let before = text.len();
        assert!(!EncodedEvent::new(own).write(Dialect::Hub, &mut text));
        assert_eq!(text.len(), before, "nobody is told their own words");
    }
}
