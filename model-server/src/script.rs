//! A turn as server-sent events, with the pauses and accidents that its plan asks for.

use super::{marker::Ending, plan::Plan};
use axum::{
    body::Body,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use futures::{StreamExt as _, stream};
use serde_json::Value;
use std::{fmt, future, io, time::Duration};
use tokio::{task::yield_now, time::sleep};

/// How many words come through before an answer breaks off.
const WORDS_BEFORE_ACCIDENT: usize = 3;

/// What to send, step by step.
#[derive(Debug, Default)]
pub(super) struct Script {
    steps: Vec<Step>,
    events: usize,
}

#[derive(Debug)]
enum Step {
    Send(String),
    Pause(Duration),
    /// The stream ends here, whatever comes after.
    Close,
    /// The connection ends here.
    Cut,
}

impl Script {
    /// Sends an event that has a name.
    pub(super) fn event(&mut self, name: &str, data: &Value) {
        self.send(format!("event: {name}\ndata: {data}\n\n"));
    }

    /// Sends an event without a name.
    pub(super) fn data(&mut self, data: impl fmt::Display) {
        self.send(format!("data: {data}\n\n"));
    }

    /// How many events there are so far.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    fn send(&mut self, event: String) {
        self.steps.push(Step::Send(event));
        self.events += 1;
    }

    /// Says `text` word by word, at the pace and to the ending that the plan asks for.
    pub(super) fn stream_words(
        &mut self,
        text: &str,
        plan: &Plan,
        word: impl Fn(&mut Self, &str),
        fault: impl FnOnce(&mut Self),
    ) {
        let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
        let count = match plan.ending {
            Ending::Complete => words.len(),
            Ending::Fault | Ending::Cut => words.len().min(WORDS_BEFORE_ACCIDENT),
        };
        for piece in &words[..count] {
            word(self, piece);
            self.steps.extend(plan.pace.map(Step::Pause));
        }
        match plan.ending {
            Ending::Complete => {}
            Ending::Fault => {
                fault(self);
                self.steps.push(Step::Close);
            }
            Ending::Cut => self.steps.push(Step::Cut),
        }
    }
}

impl IntoResponse for Script {
    fn into_response(self) -> Response {
        let steps =
            stream::iter(self.steps).take_while(|step| future::ready(!matches!(step, Step::Close)));
        let body = steps.filter_map(async |step| {
            // The server flushes while the body is not ready: so each event leaves by itself, as a
            // model's would, and is on its way before the connection is cut.
            yield_now().await;
            match step {
                Step::Send(event) => Some(Ok(event)),
                Step::Pause(pace) => {
                    sleep(pace).await;
                    None
                }
                Step::Close => None,
                Step::Cut => Some(Err(io::Error::other("cut, as planned"))),
            }
        });
        let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        (headers, Body::from_stream(body.boxed())).into_response()
    }
}
