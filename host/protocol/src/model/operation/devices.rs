//! Devices, which are paired browsers: the requests for them, and their answers.

use schemars::JsonSchema;
use serde::Serialize;

/// Request for the devices of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRequest {
    /// Lists the devices.
    List,
    /// Removes a device: its key counts for nothing from then on.
    Remove {
        /// Id of the device.
        id: String,
    },
    /// Offers a pairing to the browser that opens its address.
    Pair,
    /// Returns the state of a pairing.
    Pairing {
        /// Token of the pairing.
        token: String,
    },
    /// Confirms or refuses the key of a browser.
    Confirm {
        /// Token of the pairing.
        token: String,
        /// Code of the key, which the operator saw.
        code: String,
        /// True to pair the browser.
        accept: bool,
    },
    /// Presents the key of a browser, whose proof was checked. No method of JSON-RPC sends this.
    Present(Box<PresentKey>),
}

/// Key of a browser that wants to be paired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentKey {
    /// Token of the pairing.
    pub token: String,
    /// Name of the browser, as it says.
    pub name: String,
    /// SHA-256 thumbprint of its public key (RFC 7638), in hexadecimal digits.
    pub thumbprint: String,
}

impl DeviceRequest {
    /// Name of the operation, for metrics.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::List => "list_devices",
            Self::Remove { .. } => "remove_device",
            Self::Pair => "pair_device",
            Self::Pairing { .. } => "get_pairing",
            Self::Confirm { .. } => "confirm_pairing",
            Self::Present(_) => "present_key",
        }
    }
}

/// Answer to a [`DeviceRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DeviceReport {
    /// Devices.
    List(DeviceList),
    /// Device that was removed.
    Removed(NamedDevice),
    /// Pairing that was offered.
    Offered(OfferedPairing),
    /// State of a pairing.
    State(PairingReport),
    /// Answer to a browser.
    Presented(PresentedReport),
}

/// Paired browsers: the answer to `hub/devices/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceList {
    /// The devices, the latest first.
    pub devices: Vec<DeviceInfo>,
}

/// A paired browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo {
    /// Id: eight hexadecimal digits.
    pub id: String,
    /// Name that it gave itself.
    pub name: String,
    /// Time of the pairing: RFC 3339 in UTC.
    pub paired_at: String,
    /// Time of a late request, at most an hour before the latest: RFC 3339 in UTC.
    pub last_used_at: String,
}

/// A device by its name: the answer to `hub/devices/remove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamedDevice {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Offered pairing: the answer to `hub/devices/pair`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedPairing {
    /// Token that the browser presents: a secret, for one browser.
    pub token: String,
    /// URL of the page.
    pub page: String,
    /// Time until which it can be presented: RFC 3339 in UTC.
    pub expires_at: String,
}

/// State of a pairing: the answer to `hub/devices/pairing` and `hub/devices/confirm`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingReport {
    /// `offered`, `presented`, `paired`, `paired-before` or `refused`.
    pub state: String,
    /// Name of the browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Code of its key, such as `AB12-CD34`, which the browser shows as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Reason why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Answer to a browser that presented its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PresentedReport {
    /// `pending`, `paired`, `refused` or `over`.
    pub pairing: String,
    /// Code of its key, while the operator has not decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Access token of a paired browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// The device that it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<NamedDevice>,
    /// Reason why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PairingReport {
    /// Pairing in this state, without further members.
    pub fn of(state: &str) -> Self {
        Self { state: state.to_owned(), name: None, code: None, reason: None }
    }
}

impl PresentedReport {
    /// Answer in this state of the pairing, without further members.
    pub fn of(pairing: &str) -> Self {
        let (code, access_token, device, reason) = Default::default();
        Self { pairing: pairing.to_owned(), code, access_token, device, reason }
    }
}
