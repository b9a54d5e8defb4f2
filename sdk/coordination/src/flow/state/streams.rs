//! Texts of steps with `stream`, handed to their readers while they are written.
//!
//! ```text
//!   writer:  Wrote ──► text so far          its end ──► rest, or the whole text
//!   reader:  waits ──► (pause or size) called with the beginning ──► piece ──► ... ──► last
//! ```
//!
//! One piece is on its way to a reader at a time: what is written meanwhile is in the next one. A
//! reader that ends before the last piece is called once more, with the whole text, as if the
//! writer had no `stream`.

use super::{
    super::{
        event::{ChildEnd, FlowAction, Id, Role},
        row::{Handed, Row, StepPhase},
        stream::Piece,
        text::one_line,
    },
    FlowState, MAX_TEXT,
};
use serde_json::{Value, json};

/// Most bytes of a text that are handed over before its writer has ended.
const MAX_WRITTEN: usize = MAX_TEXT - 1024;

/// Text that is handed over at once, in bytes; less is handed over after a pause.
const PIECE: usize = 2 << 10;

/// Pause in which a text is collected, in milliseconds.
const PAUSE_MS: u64 = 500;

/// Pause before a piece that could not be sent is sent again, in milliseconds.
const AGAIN_MS: u64 = 2_000;

/// Most pieces of a text; what is written after that is in the last one.
const MAX_PIECES: u32 = 100;

impl FlowState {
    /// True if the text of this child is handed over while it is written.
    pub fn streams(&self, id: Id) -> bool {
        id.role == Role::Work && self.definition.steps.get(id.step).is_some_and(|it| it.stream)
    }

    /// Takes what a writer has written.
    pub(super) fn wrote(&mut self, id: Id, text: &str) {
        if !self.open.contains_key(&id) || !self.streams(id) {
            return;
        }
        let Some(Row { written, .. }) = self.rows.get_mut(id.step) else { return };
        let mut end = MAX_WRITTEN.saturating_sub(written.len()).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        written.push_str(&text[..end]);
    }

    /// Notes that a child has read its messages.
    pub(super) fn took(&mut self, id: Id) {
        if let Some(handed) = self.handed_of(id) {
            handed.is_sent = false;
        }
    }

    /// Takes back a piece that could not be sent.
    pub(super) fn unsent(&mut self, id: Id) {
        if let Some(handed) = self.handed_of(id) {
            (handed.is_sent, handed.is_closed, handed.is_refused) = (false, false, true);
            handed.bytes = handed.before;
        }
    }

    /// Notes that a child asks a question, or that it goes on.
    pub(super) fn set_asking(&mut self, id: Id, asks: bool) {
        if let Some(handed) = self.handed_of(id) {
            handed.asks = asks;
        }
    }

    fn handed_of(&mut self, id: Id) -> Option<&mut Handed> {
        let is_open = id.role == Role::Work && self.open.contains_key(&id);
        self.rows.get_mut(id.step).filter(|_| is_open)?.handed.as_mut()
    }

    /// Writer that is at work, and whose text the step reads.
    fn writer_at_work(&self, reader: usize) -> Option<usize> {
        let writer = self.definition.steps.get(reader)?.reads?;
        (self.rows[writer].phase == StepPhase::Running).then_some(writer)
    }

    /// Text that a writer at work has written so far, as its record for the prompt of a reader.
    pub(super) fn written_record(&self, reader: usize) -> Option<(String, Value)> {
        let writer = self.writer_at_work(reader)?;
        let text = &self.rows[writer].written;
        Some((self.definition.steps[writer].id.clone(), json!({ "text": text })))
    }

    /// True if the step may begin before the step that it reads has ended.
    pub(super) fn may_read(&self, reader: usize) -> bool {
        let Some(writer) = self.writer_at_work(reader) else { return false };
        let is_done = |&need: &usize| need == writer || self.rows[need].phase == StepPhase::Done;
        self.definition.steps[reader].needs.iter().all(is_done)
            && !self.rows[writer].written.trim().is_empty()
    }

    /// True if the step begins now, before the step that it reads has ended.
    pub(super) fn begins_reading(&self, reader: usize) -> bool {
        let writer = self.definition.steps[reader].reads.filter(|_| self.may_read(reader));
        writer.is_some_and(|writer| self.is_due(reader, self.rows[writer].written.len()))
    }

    /// True if a reader that is at work has the step's text in part.
    pub(super) fn is_read(&self, writer: usize) -> bool {
        self.readers(writer).next().is_some()
    }

    /// Readers at work of a step.
    fn readers(&self, writer: usize) -> impl Iterator<Item = usize> {
        let steps = self.definition.steps.iter().zip(&self.rows).enumerate();
        steps
            .filter(move |(_, (step, row))| {
                step.reads == Some(writer)
                    && row.phase == StepPhase::Running
                    && row.handed.is_some()
            })
            .map(|(reader, _)| reader)
    }

    /// Begins the input of a reader that is called: the note and the facts for its message.
    pub(super) fn begin_reading(&mut self, reader: usize) -> Option<(String, Value)> {
        let Some(writer) = self.writer_at_work(reader) else {
            self.rows[reader].handed = None;
            return None;
        };
        let bytes = self.rows[writer].written.len();
        self.rows[reader].is_due = false;
        self.rows[reader].handed = Some(Handed { bytes, pieces: 1, ..Handed::default() });
        let id = &self.definition.steps[writer].id;
        Some((Piece::Begin.text(id, None), Piece::Begin.facts(id, 1)))
    }

    /// Keeps a reader open that completed before the last piece: it is called once more.
    pub(super) fn has_ended_early(&mut self, id: Id, end: &ChildEnd) -> bool {
        let handed = self.rows[id.step].handed.as_mut().filter(|handed| !handed.is_closed);
        match handed {
            Some(handed) if end.completed && id.role == Role::Work => {
                handed.has_ended = true;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Starts the timers of readers, and sends them what is due.
    pub(super) fn feed(&mut self, actions: &mut Vec<FlowAction>) {
        for reader in 0..self.rows.len() {
            let Some(writer) = self.definition.steps[reader].reads else { continue };
            match self.rows[reader].phase {
                StepPhase::Waiting if self.may_read(reader) && !self.begins_reading(reader) => {
                    self.pause(reader, PAUSE_MS, actions);
                }
                StepPhase::Running if self.rows[reader].handed.is_some() => {
                    self.feed_one(reader, writer, actions);
                }
                StepPhase::Waiting
                | StepPhase::Running
                | StepPhase::Done
                | StepPhase::Failed
                | StepPhase::Dropped => {}
            }
        }
    }

    fn feed_one(&mut self, reader: usize, writer: usize, actions: &mut Vec<FlowAction>) {
        let Some(handed) = self.rows[reader].handed.clone() else { return };
        let is_over = self.rows[writer].phase == StepPhase::Done;
        if handed.has_ended {
            if is_over {
                let [by, of] = [reader, writer].map(|step| &self.definition.steps[step].id);
                let text = format!("{by}: ended before {of}, and gets its whole text");
                actions.push(FlowAction::Say(text));
                self.call(reader, 0, actions);
            }
            return;
        }
        let Some(child) = self.child_of(reader) else { return };
        if handed.asks || handed.is_closed || handed.is_sent && !is_over {
            return;
        }
        if handed.is_refused && !self.rows[reader].is_due {
            return self.pause(reader, AGAIN_MS, actions);
        }
        let written = self.rows[writer].written.clone();
        if is_over {
            let record = self.rows[writer].record.as_ref();
            let full_text = record.and_then(|record| record["text"].as_str()).unwrap_or_default();
            let full_text = full_text.to_owned();
            let sent = written[..handed.bytes].trim_end();
            let piece = match full_text.strip_prefix(sent) {
                Some(rest) => Piece::Rest(rest.trim_end()),
                None => Piece::Other(&full_text),
            };
            return self.send(child, writer, &piece, written.len(), actions);
        }
        let more = &written[handed.bytes..];
        if more.is_empty() || handed.pieces >= MAX_PIECES {
            return;
        }
        if !self.is_due(reader, more.len()) {
            return self.pause(reader, PAUSE_MS, actions);
        }
        self.send(child, writer, &Piece::More(more), written.len(), actions);
    }

    fn send(
        &mut self,
        child: Id,
        writer: usize,
        piece: &Piece<'_>,
        bytes: usize,
        actions: &mut Vec<FlowAction>,
    ) {
        self.stop_pause(child.step, actions);
        let Some(row) = self.rows.get_mut(child.step) else { return };
        row.is_due = false;
        let Some(handed) = &mut row.handed else { return };
        (handed.before, handed.bytes) = (handed.bytes, bytes);
        handed.pieces += 1;
        (handed.is_sent, handed.is_refused, handed.is_closed) = (true, false, piece.is_last());
        let number = handed.pieces;
        let (writer, reader) = (&self.definition.steps[writer], &self.definition.steps[child.step]);
        let text = piece.text(&writer.id, reader.output.as_ref());
        let facts = piece.facts(&writer.id, number);
        actions.push(FlowAction::Send { id: child, text, facts });
    }

    /// True once a pause is over, or for a text that is handed over at once.
    pub(super) fn is_due(&self, reader: usize, bytes: usize) -> bool {
        self.rows[reader].is_due || bytes >= PIECE
    }

    fn pause(&mut self, reader: usize, ms: u64, actions: &mut Vec<FlowAction>) {
        let id = self.pause_id(reader);
        if !self.open.contains_key(&id) {
            self.wait(id, ms, actions);
        }
    }

    /// Stops the pause of a reader.
    pub(super) fn stop_pause(&mut self, reader: usize, actions: &mut Vec<FlowAction>) {
        let id = self.pause_id(reader);
        if self.open.remove(&id).is_some() {
            actions.push(FlowAction::Cancel(id));
        }
    }

    fn pause_id(&self, reader: usize) -> Id {
        let round = self.rows[reader].round;
        Id { step: reader, round, item: 0, attempt: 1, role: Role::Piece }
    }

    /// Sets the readers of a writer that begins anew back to waiting.
    pub(super) fn restart_readers(&mut self, writer: usize, actions: &mut Vec<FlowAction>) {
        self.rows[writer].written.clear();
        let readers: Vec<_> = self.readers(writer).collect();
        for reader in readers {
            let id = &self.definition.steps[writer].id;
            let text = format!("{}: begins anew with {id}", self.definition.steps[reader].id);
            actions.push(FlowAction::Say(text));
            let text = "the step begins anew, and so do you, in another task";
            self.send_failure(reader, writer, ("superseded", text), actions);
            self.close(reader, actions);
            let Some(row) = self.rows.get_mut(reader) else { continue };
            (row.phase, row.handed, row.is_due) = (StepPhase::Waiting, None, false);
            row.round += 1;
            row.items.clear();
        }
    }

    /// Tells the readers of a writer that it failed.
    pub(super) fn tell_readers(
        &mut self,
        writer: usize,
        (reason, text): (&str, &str),
        actions: &mut Vec<FlowAction>,
    ) {
        for reader in self.readers(writer).collect::<Vec<_>>() {
            self.send_failure(reader, writer, (reason, &one_line(text)), actions);
        }
    }

    fn send_failure(
        &mut self,
        reader: usize,
        writer: usize,
        (reason, text): (&str, &str),
        actions: &mut Vec<FlowAction>,
    ) {
        if let Some(child) = self.child_of(reader) {
            self.send(child, writer, &Piece::Failed { reason, text }, 0, actions);
        }
    }

    /// Child at work of a step that is done once.
    fn child_of(&self, step: usize) -> Option<Id> {
        let is_it = |id: &&Id| id.step == step && id.role == Role::Work;
        self.open.keys().find(is_it).copied()
    }
}
