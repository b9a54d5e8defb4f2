//! Column values of conversations: conversations of different tenants may have the same id.
//!
//! A conversation of the default tenant is stored under its own id, as in stores before tenants;
//! one of another tenant under the tenant's name, a separator and its id. Tenant names never
//! contain the separator, so no client can name another tenant's conversation.

use a2a_hub_protocol::id::{ContextId, TenantId};
use std::borrow::Cow;

/// Separator between tenant and conversation: the unit separator of ASCII.
pub(in crate::sqlite) const SEPARATOR: char = '\u{1f}';

/// Column value of a conversation.
pub(in crate::sqlite) fn key(context: &ContextId) -> Cow<'_, str> {
    prefix_of(context.tenant(), context.as_str())
}

/// Prefix of the column values of a tenant's conversations whose ids begin with `prefix`.
pub(in crate::sqlite) fn prefix_of<'n>(tenant: &TenantId, prefix: &'n str) -> Cow<'n, str> {
    if tenant.is_default() && !prefix.contains(SEPARATOR) {
        return prefix.into();
    }
    format!("{tenant}{SEPARATOR}{prefix}").into()
}

/// Conversation of a column value.
pub(in crate::sqlite) fn read(key: String) -> ContextId {
    let Some((tenant, name)) = key.split_once(SEPARATOR) else { return ContextId::new(key) };
    match TenantId::try_from(tenant.to_owned()) {
        Ok(tenant) => ContextId::new(name).of_tenant(&tenant),
        // Only a client of a hub before tenants can have chosen this id.
        Err(_) => ContextId::new(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn context_keys_are_unique_and_reversible(
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
    fn default_tenant_key_is_plain_id() {
        assert_eq!(key(&ContextId::new("c")), "c");
        let acme = TenantId::parse("acme").unwrap();
        assert_eq!(key(&ContextId::new("c").of_tenant(&acme)), "acme\u{1f}c");
    }
}
