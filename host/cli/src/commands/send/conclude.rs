//! End of an answer: its rest, its files, and the way to continue.

use super::{
    super::task::{
        output::TaskOutput,
        save_files::{self, Saved},
    },
    options::Send,
};
use crate::Exit;
use serde_json::{Map, Value};

/// Prints the rest of the answer, and saves its files.
pub(crate) fn conclude(send: &Send, shown: &mut TaskOutput, exit: Exit) -> anyhow::Result<()> {
    let Some(dir) = &send.save else {
        shown.finish(exit, Map::new())?;
        send.note_continuation(shown);
        return Ok(());
    };
    let saved = match save_files::save(&shown.snapshot, dir) {
        Ok(saved) => saved,
        // The answer is valid even if its files cannot be saved.
        Err(why) => {
            let why = shown.unsaved(why, exit)?;
            send.note_continuation(shown);
            return Err(why);
        }
    };
    let all = saved.iter().map(Saved::to_json).collect();
    shown.finish(exit, Map::from_iter([("saved".to_owned(), Value::Array(all))]))?;
    saved.iter().for_each(|saved| shown.note(saved.text()));
    send.note_continuation(shown);
    Ok(())
}
