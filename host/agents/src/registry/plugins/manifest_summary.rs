//! Summary of the capabilities that a component asks for.

use a2a_hub_core::{
    grant::{Ask, Grant, intersect},
    plugin::{manifest_diff::asked_of, missing_grants::lacks},
};
use a2a_hub_protocol::operation::AskedCapability;

/// Capabilities that a component asks for, with its reasons.
pub fn asked(ask: &Ask) -> Vec<AskedCapability> {
    asked_beyond(ask, &Grant::default())
}

/// Capabilities that a component asks for and that this grant does not include, with its reasons.
pub fn asked_beyond(ask: &Ask, grant: &Grant) -> Vec<AskedCapability> {
    let all = lacks(ask, &intersect(ask, grant)).into_iter();
    let told = all.map(|asked| {
        let program = asked.capability.strip_prefix("process.");
        let details = program.and_then(|name| Some(asked_of(name, ask.process.get(name)?)));
        AskedCapability {
            details: details.unwrap_or_default(),
            capability: asked.capability,
            what: asked.what,
            reason: asked.reason.map(Into::into),
        }
    });
    told.collect()
}
