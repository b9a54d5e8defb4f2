//! Interfaces of a card: `supportedInterfaces` in 1.0 (A2A 1.0, section 4.4.6), and their
//! equivalents in 0.3 (A2A 0.3, section 5.6).

use crate::{
    codec::members::Members,
    model::{
        error::A2aError,
        interface::{Binding, Interface, minor},
    },
};
use serde_json::Value;

/// Reads the interfaces of a card of either version, in order of preference.
/// [`AgentCard::parse`](crate::model::card::AgentCard::parse) reads the rest of the card.
pub fn read_interfaces(card: &Value) -> Result<Vec<Interface>, A2aError> {
    let mut of = Members::new(card.clone(), "")?;
    let mut all = of.list("supportedInterfaces", |interface, at| {
        let mut of = Members::new(interface, at)?;
        Ok(Interface {
            url: of.need_text("url")?,
            binding: of.need_text("protocolBinding")?,
            version: minor(&of.need_text("protocolVersion")?),
            tenant: of.some_text("tenant")?,
        })
    })?;
    if all.is_empty() {
        // A 0.3 card has one version for all interfaces.
        let version = minor(of.some_text("protocolVersion")?.as_deref().unwrap_or("0.3"));
        let first = of.some_text("preferredTransport")?;
        let binding = first.unwrap_or_else(|| Binding::JsonRpc.name().to_owned());
        let url = of.need_text("url")?;
        all.push(Interface { url, binding, version: version.clone(), tenant: None });
        let more = of.list("additionalInterfaces", |interface, at| {
            let mut of = Members::new(interface, at)?;
            let (binding, url) = (of.need_text("transport")?, of.need_text("url")?);
            Ok(Interface { url, binding, version: version.clone(), tenant: None })
        })?;
        let new: Vec<_> = more.into_iter().filter(|one| !all.contains(one)).collect();
        all.extend(new);
    }
    Ok(all)
}
