//! People whom the operator let in: their roles, API keys and invitations, and what each key may
//! do.
//!
//! A person belongs to one tenant. The role says what a person may do there; the scopes of a key
//! only narrow that. Reading covers the tenant, and changing covers the person's own tasks, or all
//! of the tenant's for the role [`PersonRole::Owner`].

mod automation;
mod card_scope;
mod certificate;
mod certificate_validity;
mod inherited_automation;
mod login;
mod person_name;
mod rights;
mod role;
mod scope;
mod scope_target;

pub use automation::{AutomationKind, AutomationSuspended, OwnedAutomation, PeopleByName, pass_on};
pub use card_scope::{CardScopes, ScopesMissing};
pub use certificate::{
    CertificateFingerprint, CertificateName, CertificateNames, CertificateRule, CertificateRules,
    InvalidFingerprint, InvalidSan, PersonProof, UnmappedCertificate,
};
pub use certificate_validity::{CertificateValidity, ValidityState};
pub use inherited_automation::InheritedAutomation;
pub(crate) use inherited_automation::{automation_of_key, key_of_automation};
pub use login::{AgentLogins, Login, LoginScope, LoginUser, NoLogin};
pub use person_name::{InvalidPersonName, PersonName};
pub(crate) use rights::person_identity;
pub use rights::{PersonRights, PersonRule, RightsDenied};
pub use role::PersonRole;
pub use scope::{InvalidScope, KeyScope, KeyScopes};
pub use scope_target::{ScopeTarget, TaskAgent, TaskFacts};

use a2a_hub_protocol::id::TenantId;
use serde::{Deserialize, Serialize};

/// Largest number of people.
pub const MAX_PEOPLE: usize = 200;

/// Largest number of people of one tenant that an owner of it may add: none fills the hub.
pub const MAX_PEOPLE_OF_OWNER: usize = 50;

/// Largest number of keys of one person.
pub const MAX_KEYS: usize = 20;

/// Largest number of unused invitations of one person.
pub const MAX_INVITATIONS: usize = 5;

/// Longest label of a key, in characters.
const MAX_LABEL: usize = 63;

/// A person whom the operator let in, with the keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// Name, which no other person of the hub has.
    pub name: PersonName,
    /// Tenant.
    pub tenant: TenantId,
    /// Role in the tenant.
    pub role: PersonRole,
    /// Time at which the operator added the person: RFC 3339 in UTC.
    pub added_at: String,
    /// Keys, the oldest first.
    #[serde(default)]
    pub keys: Vec<ApiKey>,
    /// Unused invitations, the oldest first.
    #[serde(default)]
    pub invitations: Vec<Invitation>,
    /// Schedules and triggers that passed to the person from removed ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<InheritedAutomation>,
}

/// An API key. The hub stores a digest in place of its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Id: twelve hexadecimal digits, which are a part of the key.
    pub id: String,
    /// SHA-256 digest of the key, in hexadecimal digits.
    pub digest: String,
    /// Label, such as the name of a machine: a plain line.
    pub label: String,
    /// Scopes, which narrow the person's role.
    pub scopes: KeyScopes,
    /// Time of its making: RFC 3339 in UTC.
    pub created_at: String,
    /// Time from which it counts no more: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of a late request, at most an hour before the latest: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Address from which that request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_from: Option<String>,
}

/// An invitation: its holder gets one key of the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invitation {
    /// SHA-256 digest of the invitation, in hexadecimal digits.
    pub digest: String,
    /// Scopes of the key.
    pub scopes: KeyScopes,
    /// Time from which it counts no more: RFC 3339 in UTC.
    pub expires_at: String,
    /// Time from which the key counts no more: RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_expires_at: Option<String>,
}

impl ApiKey {
    /// True if the key has expired at `now` (RFC 3339 in UTC).
    pub fn has_expired(&self, now: &str) -> bool {
        self.expires_at.as_deref().is_some_and(|at| at <= now)
    }
}

impl Person {
    /// Rights of the person with a key; `None` if the person has no such key, or it has expired.
    /// Runs of the person's schedules and triggers have a text in place of the key.
    pub fn rights(&self, key: &str, now: &str) -> Option<PersonRights> {
        if automation_of_key(key).is_some() {
            return Some(self.automation_rights());
        }
        let key = self.keys.iter().find(|one| one.id == key && !one.has_expired(now))?;
        let expires_at = key.expires_at.clone();
        Some(PersonRights { expires_at, ..self.rights_within(&key.scopes) })
    }

    /// Rights of the runs of the person's schedules and triggers: they begin tasks, if the role
    /// allows that, and do nothing else.
    pub fn automation_rights(&self) -> PersonRights {
        self.rights_within(&KeyScopes::sending())
    }

    /// Rights of the person within these scopes.
    pub fn rights_within(&self, scopes: &KeyScopes) -> PersonRights {
        let (tenant, role, scopes) = (self.tenant.clone(), self.role, scopes.clone());
        PersonRights { name: self.name.clone(), tenant, role, scopes, expires_at: None }
    }

    /// Removes the invitation with this digest. Returns it unless it has expired at `now`.
    pub fn take_invitation(&mut self, digest: &str, now: &str) -> Option<Invitation> {
        let at = self.invitations.iter().position(|one| one.digest == digest)?;
        let invitation = self.invitations.remove(at);
        (*invitation.expires_at > *now).then_some(invitation)
    }

    /// Removes what has expired at `now`: invitations, and keys a month after they expired.
    pub fn sweep(&mut self, now: &str, month_ago: &str) {
        self.invitations.retain(|one| *one.expires_at > *now);
        self.keys.retain(|one| !one.has_expired(month_ago));
    }
}

/// Label of a key: a plain line of at most 63 characters.
pub fn label_of(offered: &str) -> String {
    let label = crate::text::plain_text::line(offered, MAX_LABEL);
    if label.is_empty() { "key".to_owned() } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, expires_at: Option<&str>) -> ApiKey {
        ApiKey {
            id: id.to_owned(),
            digest: "00".to_owned(),
            label: label_of("laptop\u{1b}[2J"),
            scopes: KeyScopes::default(),
            created_at: "2026-11-01T00:00:00.000Z".to_owned(),
            expires_at: expires_at.map(str::to_owned),
            last_used_at: None,
            last_used_from: None,
        }
    }

    fn person() -> Person {
        Person {
            name: PersonName::parse("ada").unwrap(),
            tenant: TenantId::parse("acme").unwrap(),
            role: PersonRole::Member,
            added_at: "2026-11-01T00:00:00.000Z".to_owned(),
            keys: vec![key("a", None), key("b", Some("2026-12-01T00:00:00.000Z"))],
            invitations: vec![Invitation {
                digest: "11".to_owned(),
                scopes: KeyScopes::default(),
                expires_at: "2026-12-01T00:00:00.000Z".to_owned(),
                key_expires_at: None,
            }],
            inherited: Vec::new(),
        }
    }

    #[test]
    fn expired_key_has_no_rights() {
        let (before, at) = ("2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z");
        let person = person();
        assert!(person.rights("a", at).is_some());
        assert!(person.rights("b", before).is_some());
        assert_eq!(person.rights("b", at), None);
        assert_eq!(person.rights("c", at), None);
    }

    #[test]
    fn automation_only_begins_tasks() {
        let key = key_of_automation("nightly");
        let rights = person().rights(&key, "2026-12-01T00:00:00.000Z").unwrap();
        let may = |scope| rights.require(scope).is_ok();
        let all: Vec<_> = KeyScope::ALL.into_iter().filter(|scope| may(*scope)).collect();
        assert_eq!((all, rights.tenant.as_str()), (vec![KeyScope::Send], "acme"));
        let viewer = Person { role: PersonRole::Viewer, ..person() };
        assert!(viewer.automation_rights().require(KeyScope::Send).is_err());
    }

    #[test]
    fn invitation_counts_once_and_in_time() {
        let (before, at) = ("2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z");
        let mut early = person();
        assert_eq!(early.take_invitation("12", before), None);
        assert!(early.take_invitation("11", before).is_some());
        assert_eq!(early.take_invitation("11", before), None);
        assert_eq!(person().take_invitation("11", at), None);
    }

    #[test]
    fn sweep_removes_what_expired() {
        let mut one = person();
        one.sweep("2026-12-02T00:00:00.000Z", "2026-11-02T00:00:00.000Z");
        assert_eq!((one.keys.len(), one.invitations.len()), (2, 0));
        one.sweep("2027-01-02T00:00:00.000Z", "2026-12-02T00:00:00.000Z");
        assert_eq!(one.keys.len(), 1, "an expired key is listed for a month");
    }

    #[test]
    fn person_round_trips_through_json() {
        let text = serde_json::to_string(&person()).unwrap();
        assert_eq!(serde_json::from_str::<Person>(&text).unwrap(), person());
        assert!(!text.contains('\u{1b}') && text.contains("laptop"));
        let older = r#"{"name":"ada","tenant":"","role":"owner","addedAt":"x"}"#;
        assert_eq!(serde_json::from_str::<Person>(older).unwrap().keys, []);
    }
}
