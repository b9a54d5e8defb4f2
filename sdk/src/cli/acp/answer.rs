//! Answer of the program: the text of its latest message, assembled from chunks.

/// Text of the message that the program writes.
///
/// A message ends when another `messageId` begins. Chunks without ids belong together until the
/// program begins a tool call or asks for something: an update of a call that it began earlier,
/// such as the output of one in the background, ends no message.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    /// Id of the message, if the program sends one.
    id: Option<String>,
    /// True after an update that ends a message without an id.
    is_over: bool,
    /// True if the program discarded the message and writes it anew.
    is_void: bool,
}

/// Beginning of a message.
#[derive(Debug, PartialEq)]
pub(super) struct NewMessage {
    /// Text of the previous message, which is not the answer; empty if the program discarded it.
    pub(super) previous: String,
}

impl Answer {
    /// Ends a message without an id.
    pub(super) fn end_message(&mut self) {
        self.is_over = true;
    }

    /// Discards the message: the program writes it anew.
    pub(super) fn discard(&mut self) {
        self.is_void = true;
    }

    /// Assigns a chunk of the message with this id, if any. Returns the beginning of another
    /// message, whose text replaces the previous one.
    pub(super) fn begin(&mut self, id: Option<&str>) -> Option<NewMessage> {
        let is_same = match (id, self.id.as_deref()) {
            (Some(id), Some(known)) => id == known,
            (Some(_), None) => false,
            (None, _) => !self.is_over,
        };
        let is_first = self.id.is_none() && self.text.is_empty();
        if is_same && !self.is_void && !is_first {
            self.is_over = false;
            return None;
        }
        let text = std::mem::take(&mut self.text);
        let previous = if self.is_void { String::new() } else { text };
        let id = id.map(ToOwned::to_owned);
        *self = Self { id, ..Self::default() };
        Some(NewMessage { previous })
    }

    /// Adds text to the message.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// True if the message has no text.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Removes the text.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of the messages that these events make: a chunk with its id, or else the end of a
    /// message without an id.
    fn messages(events: &[Option<(Option<&str>, &str)>]) -> Vec<String> {
        let (mut answer, mut texts) = (Answer::default(), Vec::new());
        for event in events {
            let Some((id, text)) = event else {
                answer.end_message();
                continue;
            };
            if let Some(NewMessage { previous }) = answer.begin(*id) {
                texts.push(previous);
            }
            answer.push(text);
        }
        texts.push(answer.take());
        texts.retain(|text| !text.is_empty());
        texts
    }

    #[test]
    fn message_ends_by_its_id() {
        let (a, b) = (Some("a"), Some("b"));
        for (events, wanted) in [
            (vec![Some((a, "1")), None, Some((a, "2"))], vec!["12"]),
            (vec![Some((a, "1")), Some((b, "2"))], vec!["1", "2"]),
            (vec![Some((None, "1")), Some((None, "2"))], vec!["12"]),
            (vec![Some((None, "1")), None, Some((None, "2"))], vec!["1", "2"]),
            (vec![Some((None, "1")), Some((a, "2"))], vec!["1", "2"]),
            (vec![Some((a, "1")), Some((None, "2")), Some((a, "3"))], vec!["123"]),
            (vec![Some((a, "1")), None, Some((None, "2"))], vec!["1", "2"]),
        ] {
            assert_eq!(messages(&events), wanted, "{events:?}");
        }
    }

    #[test]
    fn discarded_message_is_written_anew() {
        let mut answer = Answer::default();
        answer.begin(Some("a"));
        answer.push("half");
        answer.discard();
        assert_eq!(answer.begin(Some("a")), Some(NewMessage { previous: String::new() }));
        answer.push("whole");
        assert_eq!(answer.begin(Some("a")), None);
        assert_eq!(answer.take(), "whole");
    }
}
