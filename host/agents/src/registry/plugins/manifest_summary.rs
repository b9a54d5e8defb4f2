//! Summary of the capabilities that a component asks for.

use a2a_hub_core::{
    grant::{Ask, Grant, intersect},
    plugin::{manifest_diff::program_requests, missing_grants::lacks},
};
use a2a_hub_protocol::operation::AskedCapability;

/// Capabilities that a component asks for, with its reasons.
pub fn requested_capabilities(ask: &Ask) -> Vec<AskedCapability> {
    missing_capabilities(ask, &Grant::default())
}

/// Capabilities that a component asks for and that this grant does not include, with its reasons.
pub fn missing_capabilities(ask: &Ask, grant: &Grant) -> Vec<AskedCapability> {
    let all = lacks(ask, &intersect(ask, grant)).into_iter();
    let capabilities = all.map(|lack| {
        let program = lack.capability.strip_prefix("process.");
        let details = program.and_then(|name| Some(program_requests(name, ask.process.get(name)?)));
        AskedCapability {
            details: details.unwrap_or_default(),
            capability: lack.capability,
            what: lack.action,
            reason: lack.reason.map(Into::into),
        }
    });
    capabilities.collect()
}
