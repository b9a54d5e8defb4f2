//! Notifiers: runs them, and lets the operator list and test them.

use super::Hub;
use crate::error::HubError;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::{NotifierAnswer, NotifierRequest},
};

impl Hub {
    /// Runs the notifiers, for as long as the hub runs.
    pub async fn keep_notifiers(self) {
        if let Some(notifiers) = self.notifiers.clone() {
            notifiers.run(&self.events).await;
        }
    }

    /// Carries out a request for notifiers.
    pub(super) async fn perform_on_notifiers(
        &self,
        request: NotifierRequest,
    ) -> Result<NotifierAnswer, HubError> {
        let notifiers = self.notifiers.clone().ok_or_else(|| {
            let why = "this hub was built without notifiers";
            A2aError::new(ErrorKind::UnsupportedOperation, why)
        })?;
        notifiers.perform(request).await
    }
}
