//! Requests of the operator about notifiers.

use crate::{error::HubError, notify::Notifiers};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::{NotifierAnswer, NotifierRequest},
};
use std::sync::Arc;

/// Carries out a request; `notifiers` are those of the hub, if it was built with some.
pub(super) async fn perform(
    notifiers: Option<&Arc<Notifiers>>,
    request: NotifierRequest,
) -> Result<NotifierAnswer, HubError> {
    let notifiers = notifiers.ok_or_else(|| {
        let why = "this hub was built without notifiers";
        A2aError::new(ErrorKind::UnsupportedOperation, why)
    })?;
    notifiers.perform(request).await
}
