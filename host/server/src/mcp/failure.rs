//! Errors of a handler as errors of MCP.

use a2a_hub_protocol::error::{A2aError, ErrorKind};
use a2a_hub_rpc::catch_panic::caught;
use rmcp::{ErrorData, model::ErrorCode};

/// Runs a handler and converts a panic to an error, because the SDK sends no response after a
/// panic.
pub(super) async fn answered<T>(
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    caught(work).await.map_err(|why| error(&why)).flatten()
}

/// Converts a refusal of the hub to an MCP error.
pub(super) fn error(why: &A2aError) -> ErrorData {
    let code = if why.kind == ErrorKind::Internal {
        ErrorCode::INTERNAL_ERROR
    } else if matches!(why.kind, ErrorKind::Authentication | ErrorKind::PermissionDenied) {
        ErrorCode::INVALID_REQUEST
    } else {
        ErrorCode::INVALID_PARAMS
    };
    ErrorData::new(code, why.message.clone(), why.details.clone())
}
