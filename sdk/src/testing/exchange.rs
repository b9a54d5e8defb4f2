//! HTTP response of tests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use super::process::Stop;
use crate::Failure;
use crate::host::ExchangeHandle;

/// HTTP response that follows a script.
pub(crate) struct ScriptedExchange {
    /// Check whether the task is cancelled.
    pub(super) stop: Stop,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) pieces: RefCell<VecDeque<Vec<u8>>>,
}

impl ExchangeHandle for ScriptedExchange {
    fn status(&self) -> u16 {
        self.status
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.headers.clone()
    }

    fn next(&self, _: Option<Duration>) -> Result<Option<Vec<u8>>, Failure> {
        (self.stop)()?;
        Ok(self.pieces.borrow_mut().pop_front())
    }
}

impl ScriptedExchange {
    /// True unless the task is cancelled: the next chunk, or the end, is available at once.
    pub(super) fn is_ready(&self) -> bool {
        (self.stop)().is_ok()
    }
}
