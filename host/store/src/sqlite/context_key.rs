//! Conversations as their columns name them: two tenants may have one of the same name each.
//!
//! A conversation of the default tenant is kept under its own name, as hubs before tenants kept it; one of another tenant under the
//! tenant's name, a separator and its own. No name of a tenant holds the separator, so that no client can name what is another's.

use a2a_hub_protocol::id::{ContextId, TenantId};
use std::borrow::Cow;

/// Between the tenant and the conversation: the unit separator of ASCII.
pub(super) const SEPARATOR: char = '\u{1f}';

/// A conversation as its column has it.
pub(super) fn key(context: &ContextId) -> Cow<'_, str> {
    of(context.tenant(), context.as_str())
}

/// What the columns of a tenant's conversations begin with whose names begin with `prefix`.
pub(super) fn of<'n>(tenant: &TenantId, prefix: &'n str) -> Cow<'n, str> {
    if tenant.is_default() && !prefix.contains(SEPARATOR) {
        return prefix.into();
    }
    format!("{tenant}{SEPARATOR}{prefix}").into()
}

/// The conversation that a column names.
pub(super) fn read(key: String) -> ContextId {
    let Some((tenant, name)) = key.split_once(SEPARATOR) else { return ContextId::new(key) };
    match TenantId::try_from(tenant.to_owned()) {
        Ok(tenant) => ContextId::new(name).of_tenant(&tenant),
        // Nobody but a client of a hub before tenants can have called it so.
        Err(_) => ContextId::new(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_conversation_has_a_key_of_its_own(
            tenants in prop::array::uniform2("[ab]?"),
            names in prop::array::uniform2("[ab\u{1f}]{0,4}"),
        ) {
            let tenants = tenants.map(|name| TenantId::try_from(name).unwrap());
            let [one, other] = [0, 1].map(|n| ContextId::new(names[n].clone()).of_tenant(&tenants[n]));
            prop_assert_eq!(key(&one) == key(&other), one == other);
            prop_assert_eq!(read(key(&one).into_owned()), one);
        }
    }

    #[test]
    fn the_default_tenants_are_kept_as_they_are_called() {
        assert_eq!(key(&ContextId::new("c")), "c");
        let acme = TenantId::parse("acme").unwrap();
        assert_eq!(key(&ContextId::new("c").of_tenant(&acme)), "acme\u{1f}c");
    }
}
