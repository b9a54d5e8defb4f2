//! Parameters of the methods for devices.

use crate::{
    model::{
        error::A2aError,
        operation::{DeviceRequest, Operation, PresentKey},
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Longest token, id or code, in bytes.
const MAX_WORD: usize = 128;

/// Longest name that a browser gives itself, in bytes; it is cut further.
const MAX_NAME: usize = 512;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveDeviceParams {
    /// Id of the device.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PairingParams {
    /// Token of the pairing, from `hub/devices/pair`.
    token: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ConfirmParams {
    /// Token of the pairing, from `hub/devices/pair`.
    token: String,
    /// Code of the key, from `hub/devices/pairing`.
    code: String,
    /// True to pair the browser, false to refuse it.
    accept: bool,
}

/// Body of `POST /ui/pair`.
#[derive(Deserialize)]
struct PresentParams {
    token: String,
    #[serde(default)]
    name: String,
}

fn word(at: &str, value: String) -> Result<String, A2aError> {
    if value.is_empty() || value.len() > MAX_WORD {
        return Err(A2aError::invalid(at, format!("must be a text of 1 to {MAX_WORD} bytes")));
    }
    Ok(value)
}

/// Reads `hub/devices/list`, which has no parameters.
pub(crate) fn list(_: Value) -> Result<Operation, A2aError> {
    Ok(Operation::Device(DeviceRequest::List))
}

/// Reads `hub/devices/pair`, which has no parameters.
pub(crate) fn pair(_: Value) -> Result<Operation, A2aError> {
    Ok(Operation::Device(DeviceRequest::Pair))
}

/// Reads the parameters of `hub/devices/remove`.
pub(crate) fn remove(params: Value) -> Result<Operation, A2aError> {
    let RemoveDeviceParams { id } = read(params)?;
    Ok(Operation::Device(DeviceRequest::Remove { id: word("id", id)? }))
}

/// Reads the parameters of `hub/devices/pairing`.
pub(crate) fn pairing(params: Value) -> Result<Operation, A2aError> {
    let PairingParams { token } = read(params)?;
    Ok(Operation::Device(DeviceRequest::Pairing { token: word("token", token)? }))
}

/// Reads the parameters of `hub/devices/confirm`.
pub(crate) fn confirm(params: Value) -> Result<Operation, A2aError> {
    let ConfirmParams { token, code, accept } = read(params)?;
    let (token, code) = (word("token", token)?, word("code", code)?);
    Ok(Operation::Device(DeviceRequest::Confirm { token, code, accept }))
}

/// Reads what a browser presents for a pairing: the body of `POST /ui/pair`. `thumbprint` is that
/// of the key whose proof came with it.
///
/// # Errors
///
/// If the body is not of this form.
pub fn present(body: Value, thumbprint: String) -> Result<Operation, A2aError> {
    let PresentParams { token, name } = read(body)?;
    if name.len() > MAX_NAME {
        return Err(A2aError::invalid("name", format!("must have at most {MAX_NAME} bytes")));
    }
    let key = PresentKey { token: word("token", token)?, name, thumbprint };
    Ok(Operation::Device(DeviceRequest::Present(Box::new(key))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_are_limited() {
        assert!(remove(json!({ "id": "ab12cd34" })).is_ok());
        for wrong in [json!({}), json!({ "id": "" }), json!({ "id": "x".repeat(129) })] {
            assert!(remove(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(confirm(json!({ "token": "t", "code": "c" })).is_err(), "neither yes nor no");
        let body = |name: &str| present(json!({ "token": "t", "name": name }), "ab".to_owned());
        assert!(body("Chromium").is_ok() && body(&"x".repeat(513)).is_err());
    }
}
