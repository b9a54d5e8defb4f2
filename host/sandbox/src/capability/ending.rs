//! Limits the values that a guest returns (the outcome of its run, its health, the reason of a
//! failure), and charges them to the guest's account, like the events that the guest emits.

use super::tasks::{require_short_message, values_of_parts, weight};
use crate::store::{
    bindings::{a2a::hub::types as guest, exports::a2a::hub::agent},
    convert::{
        bytes_of_failure, bytes_of_outcome, bytes_of_report, ended_from_guest, failure_from_guest,
        report_from_guest,
    },
    redaction::Hide as _,
    state::GuestState,
};
use a2a_hub_protocol::message::Message;
use a2a_hub_runtime::{Ended, Failure, HealthReport};

/// Maximum size in bytes of the reason of a failure, which people read.
const MAX_FAILURE: usize = 16 << 10;

impl GuestState {
    /// Converts and limits the outcome of a run.
    pub(crate) async fn ended(&mut self, outcome: Result<guest::Outcome, guest::Failure>) -> Ended {
        let bytes = outcome.as_ref().map_or_else(bytes_of_failure, bytes_of_outcome);
        self.account.before(bytes).await;
        if let (Ok(_), Err(why)) = (&outcome, require_short_message("end", bytes)) {
            return Ended::Failed(why);
        }
        let mut ended = ended_from_guest(outcome);
        ended.hide(&self.redaction.secrets);
        let weight = match &mut ended {
            Ended::Reply(message) => {
                weight(message, values_of_parts(&message.parts, message.metadata.as_ref()))
            }
            Ended::Status { message, metadata, .. } => {
                let of = |message: &mut Message| {
                    values_of_parts(&message.parts, message.metadata.as_ref())
                };
                let values = message.as_mut().map_or(0, of);
                weight(&(&message, &metadata), values + values_of_parts(&[], metadata.as_ref()))
            }
            Ended::Failed(why) => {
                shorten(why);
                weight(&why.to_string(), 0)
            }
        };
        // A run that is cancelled during this wait has ended in any case.
        let _ = self.until_its_pace(1, weight).await;
        ended
    }

    /// Converts and redacts a health report.
    pub(crate) async fn reported(&mut self, report: agent::HealthReport) -> HealthReport {
        self.account.before(bytes_of_report(&report)).await;
        let mut report = report_from_guest(report);
        report.hide(&self.redaction.secrets);
        report
    }

    /// Converts and limits the result of a clean-up.
    pub(crate) async fn cleaned_up(
        &mut self,
        cleaned: Result<(), guest::Failure>,
    ) -> Result<(), Failure> {
        let Err(failure) = cleaned else { return Ok(()) };
        self.account.before(bytes_of_failure(&failure)).await;
        let mut failure = failure_from_guest(failure);
        failure.hide(&self.redaction.secrets);
        shorten(&mut failure);
        Err(failure)
    }
}

/// Cuts the text of a failure. Secrets must be redacted before, because a half secret would not be
/// found.
fn shorten(failure: &mut Failure) {
    let (Failure::Invalid(why)
    | Failure::Unsupported(why)
    | Failure::Denied(why)
    | Failure::Unavailable(why)
    | Failure::Exhausted(why)
    | Failure::Internal(why)) = failure
    else {
        return;
    };
    if why.len() > MAX_FAILURE {
        let length = why.len();
        why.truncate(why.floor_char_boundary(MAX_FAILURE));
        why.push_str(&format!("… (cut: {length} bytes)"));
    }
}
