//! Methods for devices, which are paired browsers.

use crate::{
    hub::{
        device_params,
        method::{HubMethod, PLAIN},
        params,
    },
    model::operation::{DeviceList, NamedDevice, OfferedPairing, PairingReport},
};
use schemars::{JsonSchema as _, SchemaGenerator};

/// `hub/devices/list`.
pub(super) const LIST: HubMethod = HubMethod {
    name: "hub/devices/list",
    summary: "List the paired browsers",
    example: "{}",
    params: params::NoParams::json_schema,
    result: SchemaGenerator::subschema_for::<DeviceList>,
    read: device_params::list,
    admin: true,
    ..PLAIN
};

/// `hub/devices/remove`.
pub(super) const REMOVE: HubMethod = HubMethod {
    name: "hub/devices/remove",
    summary: "Remove a paired browser, and end its streams",
    example: r#"{"id": "ab12cd34"}"#,
    params: device_params::RemoveDeviceParams::json_schema,
    result: SchemaGenerator::subschema_for::<NamedDevice>,
    read: device_params::remove,
    admin: true,
    ..PLAIN
};

/// `hub/devices/pair`.
pub(super) const PAIR: HubMethod = HubMethod {
    name: "hub/devices/pair",
    summary: "Offer a pairing to the browser that presents the token within a minute; only for \
              programs of the hub's own user, over the unix socket",
    example: "{}",
    params: params::NoParams::json_schema,
    result: SchemaGenerator::subschema_for::<OfferedPairing>,
    read: device_params::pair,
    admin: true,
    ..PLAIN
};

/// `hub/devices/pairing`.
pub(super) const PAIRING: HubMethod = HubMethod {
    name: "hub/devices/pairing",
    summary: "Return the state of a pairing; only for programs of the hub's own user, over the \
              unix socket",
    example: r#"{"token": "0a1b2c"}"#,
    params: device_params::PairingParams::json_schema,
    result: SchemaGenerator::subschema_for::<PairingReport>,
    read: device_params::pairing,
    admin: true,
    ..PLAIN
};

/// `hub/devices/confirm`.
pub(super) const CONFIRM: HubMethod = HubMethod {
    name: "hub/devices/confirm",
    summary: "Confirm or refuse the key of a browser by its code; only for programs of the hub's \
              own user, over the unix socket",
    example: r#"{"token": "0a1b2c", "code": "AB12-CD34", "accept": true}"#,
    params: device_params::ConfirmParams::json_schema,
    result: SchemaGenerator::subschema_for::<PairingReport>,
    read: device_params::confirm,
    admin: true,
    ..PLAIN
};
