//! Operations on people and their keys.

use super::{
    People,
    key_text::{FreshKey, digest_of, fresh_invitation},
};
use crate::error::HubError;
use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::{Caller, Principal},
    identity::{
        ApiKey, Invitation, KeyScope, KeyScopes, MAX_INVITATIONS, MAX_KEYS, MAX_PEOPLE,
        MAX_PEOPLE_OF_OWNER, OwnedAutomation, Person, PersonName, PersonRights, PersonRole,
        RightsDenied, label_of,
    },
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::{
        CallerInfo, InvitationReport, KeyInfo, KeyTerms, NewKeyReport, PeopleList, PeopleReport,
        PeopleRequest, PersonInfo,
    },
};
use a2a_hub_store::StorageError;
use std::time::Duration;

/// Time for which an expired key is listed.
const LISTED_AFTER_EXPIRY: Duration = Duration::from_hours(24 * 30);

impl People {
    /// Carries out a request. The caller's access has been checked. `automation` is that of the
    /// configuration with owners.
    pub(crate) async fn perform(
        &self,
        caller: &Caller,
        request: PeopleRequest,
        automation: &[OwnedAutomation<'_>],
    ) -> Result<PeopleReport, A2aError> {
        if let Some(why) = &self.unreadable {
            let why = format!("the people of this hub cannot be read: {why}");
            return Err(A2aError::new(ErrorKind::Internal, why));
        }
        Ok(match request {
            PeopleRequest::List => PeopleReport::List(self.list(&self.giver(caller)?)),
            PeopleRequest::Add { name, role } => {
                PeopleReport::Person(self.add(caller, &name, &role, automation).await?)
            }
            PeopleRequest::SetRole { name, role } => {
                PeopleReport::Person(self.set_role(caller, &name, &role, automation).await?)
            }
            PeopleRequest::Remove { name, to, dry_run } => {
                let removed = self.remove(caller, &name, to.as_deref(), dry_run, automation);
                PeopleReport::Removed(removed.await?)
            }
            PeopleRequest::NewKey(terms) => {
                PeopleReport::NewKey(self.new_key(caller, terms).await?)
            }
            PeopleRequest::RevokeKey { id } => {
                PeopleReport::Revoked(self.revoke(caller, &id).await?)
            }
            PeopleRequest::Invite(terms) => {
                PeopleReport::Invitation(self.invite(caller, terms).await?)
            }
            PeopleRequest::Join { invitation, label } => {
                PeopleReport::NewKey(self.join(&invitation, &label).await?)
            }
            PeopleRequest::Me => PeopleReport::Me(self.me(&caller.principal)),
        })
    }

    /// Rights that the caller has and gives away at most, as of now.
    pub(super) fn giver(&self, caller: &Caller) -> Result<KeyGiver, A2aError> {
        let Principal::Person { name, key } = &caller.principal else { return Ok(KeyGiver(None)) };
        let rights = self.rights(name, key).ok_or_else(|| {
            let why = format!("the key `{key}` of {name} was revoked, or has expired");
            A2aError::new(ErrorKind::Authentication, why)
        })?;
        // Checked again: the role may have changed since the request was admitted.
        rights.require(KeyScope::Admin).map_err(|why| denied(&why))?;
        Ok(KeyGiver(Some(rights)))
    }

    fn list(&self, giver: &KeyGiver) -> PeopleList {
        let known = self.known.read();
        let people = known.by_name.values().filter(|person| giver.sees(person));
        PeopleList { people: people.map(person_info).collect() }
    }

    fn me(&self, caller: &Principal) -> CallerInfo {
        let (mut person, mut key) = (None, None);
        if let Principal::Person { name, key: id } = caller {
            person = self.known.read().by_name.get(name).map(person_info);
            key = Some(id.clone());
        }
        CallerInfo { caller: caller.to_string(), person, key }
    }

    async fn add(
        &self,
        caller: &Caller,
        name: &str,
        role: &str,
        automation: &[OwnedAutomation<'_>],
    ) -> Result<PersonInfo, A2aError> {
        let (name, role) = (name_of(name)?, role_of(role)?);
        let _changing = self.changing.lock().await;
        let giver = self.giver(caller)?;
        let is_configured = automation.iter().any(|one| *one.owner == name)
            || self.certificates.of(&name).next().is_some();
        if giver.0.is_some() && is_configured {
            let why = format!(
                "the operator's configuration names `{name}`, as an owner of schedules or triggers or with a client \
                 certificate: the operator adds this person"
            );
            return Err(A2aError::new(ErrorKind::PermissionDenied, why));
        }
        let tenant = giver.0.as_ref().map_or(&caller.tenant, |rights| &rights.tenant);
        let (is_taken, count) = {
            let known = self.known.read();
            (known.by_name.contains_key(&name), known.by_name.len())
        };
        if is_taken {
            let why = format!(
                "a person is named `{name}` already; `a2a-hub person list` shows everybody, and \
                 `a2a-hub key new --for {name}` makes another key"
            );
            return Err(A2aError::invalid("name", why));
        }
        if count >= MAX_PEOPLE {
            return Err(full(&format!(
                "{MAX_PEOPLE} people are known, which is the limit; `a2a-hub person remove` removes one"
            )));
        }
        if giver.0.is_some() && self.list(&giver).people.len() >= MAX_PEOPLE_OF_OWNER {
            return Err(full(&format!(
                "the tenant has {MAX_PEOPLE_OF_OWNER} people, which is the limit for its owners; the operator may add more"
            )));
        }
        let person = Person {
            name,
            tenant: tenant.clone(),
            role,
            added_at: clock::now(),
            keys: Vec::new(),
            invitations: Vec::new(),
            inherited: Vec::new(),
        };
        let added = self.store(person).await?;
        let by = &caller.principal;
        tracing::info!(%by, person = added.name, role = added.role, "a person was added");
        Ok(added)
    }

    async fn set_role(
        &self,
        caller: &Caller,
        name: &str,
        role: &str,
        automation: &[OwnedAutomation<'_>],
    ) -> Result<PersonInfo, A2aError> {
        let role = role_of(role)?;
        let _changing = self.changing.lock().await;
        let giver = self.giver(caller)?;
        let person = self.person(&giver, name)?;
        if role > person.role {
            // All credentials get more than they had, so they get no more than the giver has.
            let certificates = self.certificates.of(&person.name).map(|rule| &rule.scopes);
            let sending = KeyScopes::sending();
            let known = self.known.read();
            let runs = |one: &&OwnedAutomation<'_>| {
                one.holder(&known.by_name).is_some_and(|(holder, _)| holder.name == person.name)
            };
            let runs = automation.iter().find(runs).map(|_| &sending);
            let keys = person.keys.iter().map(|key| &key.scopes);
            let keys = keys.chain(person.invitations.iter().map(|one| &one.scopes));
            let mut scopes = keys.chain(certificates).chain(runs);
            scopes.try_for_each(|scopes| giver.may_give(scopes, &person.name))?;
        }
        let changed = self.store(Person { role, ..person }).await?;
        let by = &caller.principal;
        tracing::info!(%by, person = changed.name, role = changed.role, "a person has another role");
        Ok(changed)
    }

    async fn new_key(&self, caller: &Caller, terms: KeyTerms) -> Result<NewKeyReport, A2aError> {
        let KeyTerms { person, label, scopes, for_ms } = terms;
        let scopes = scopes_of(&scopes)?;
        let _changing = self.changing.lock().await;
        let giver = self.giver(caller)?;
        let person = self.person(&giver, &person)?;
        giver.may_give(&scopes, &person.name)?;
        let expires_at = (for_ms > 0).then(|| clock::after(Duration::from_millis(for_ms)));
        giver.may_last_until(expires_at.as_deref())?;
        tracing::info!(by = %caller.principal, person = %person.name, "a key is made");
        self.store_key(person, &label, scopes, expires_at).await
    }

    /// Exchanges an invitation for a key. It has no end, unless the key of the one who invited has
    /// one: the person may be removed, and the key revoked.
    async fn join(&self, invitation: &str, label: &str) -> Result<NewKeyReport, A2aError> {
        let (digest, now) = (digest_of(invitation), clock::now());
        let _changing = self.changing.lock().await;
        let is_invited = |person: &&Person| {
            person.invitations.iter().any(|invitation| invitation.digest == digest)
        };
        let person = self.known.read().by_name.values().find(is_invited).cloned();
        let taken = person.and_then(|mut person| {
            let invitation = person.take_invitation(&digest, &now)?;
            Some((person, invitation))
        });
        let Some((person, invitation)) = taken else {
            let why = "the invitation was used already, has expired, or is none of this hub's; ask \
                       the operator for another one (`a2a-hub person invite`)";
            return Err(A2aError::new(ErrorKind::Authentication, why));
        };
        self.store_key(person, label, invitation.scopes, invitation.key_expires_at).await
    }

    /// Adds a key to a person, and stores both.
    async fn store_key(
        &self,
        mut person: Person,
        label: &str,
        scopes: KeyScopes,
        expires_at: Option<String>,
    ) -> Result<NewKeyReport, A2aError> {
        let (now, listed) = (clock::now(), clock::before(LISTED_AFTER_EXPIRY));
        person.sweep(&now, &listed);
        if person.keys.len() >= MAX_KEYS {
            return Err(full(&format!(
                "{} has {MAX_KEYS} keys, which is the limit; `a2a-hub key revoke` ends one",
                person.name
            )));
        }
        let FreshKey { text, id } = FreshKey::make()?;
        let key = ApiKey {
            id,
            digest: digest_of(&text),
            label: label_of(label),
            scopes,
            created_at: now,
            expires_at,
            last_used_at: None,
            last_used_from: None,
        };
        let info = key_info(&person.name, &key);
        person.keys.push(key);
        let PersonInfo { name, tenant, role, .. } = self.store(person).await?;
        tracing::info!(person = name, key = info.id, "a key was made");
        Ok(NewKeyReport { secret: text, person: name, tenant, role, key: info })
    }

    /// Revokes a key. It ends at once, also if the store cannot be written.
    async fn revoke(&self, caller: &Caller, id: &str) -> Result<KeyInfo, A2aError> {
        let _changing = self.changing.lock().await;
        let giver = self.giver(caller)?;
        let mut person = self.known.read().person_of_key(id).cloned();
        if person.is_none() {
            person = self.stored(|one| one.keys.iter().any(|key| key.id == id)).await;
        }
        let person = person.filter(|person| giver.sees(person));
        let at = person.as_ref().and_then(|person| person.keys.iter().position(|one| one.id == id));
        let (Some(mut person), Some(at)) = (person, at) else {
            let why = format!("no key has the id `{id}`; `a2a-hub key list` lists them");
            return Err(A2aError::invalid("id", why));
        };
        let info = key_info(&person.name, &person.keys.remove(at));
        self.known.write().set(person.clone());
        tracing::info!(by = %caller.principal, person = %person.name, key = id, "a key was revoked");
        if let Some(storage) = &self.storage {
            let stored = storage.set_person(&person).await;
            stored.map_err(|why| returns(&format!("the key `{id}` is revoked"), &why))?;
        }
        Ok(info)
    }

    async fn invite(&self, caller: &Caller, terms: KeyTerms) -> Result<InvitationReport, A2aError> {
        let KeyTerms { person, scopes, for_ms, .. } = terms;
        let scopes = scopes_of(&scopes)?;
        let _changing = self.changing.lock().await;
        let giver = self.giver(caller)?;
        let mut person = self.person(&giver, &person)?;
        giver.may_give(&scopes, &person.name)?;
        person.sweep(&clock::now(), &clock::before(LISTED_AFTER_EXPIRY));
        if person.invitations.len() >= MAX_INVITATIONS {
            return Err(full(&format!(
                "{} has {MAX_INVITATIONS} unused invitations, which is the limit; they expire by themselves",
                person.name
            )));
        }
        let (invitation, expires_at) =
            (fresh_invitation()?, clock::after(Duration::from_millis(for_ms)));
        let key_expires_at = giver.0.and_then(|rights| rights.expires_at);
        let expires_at = match &key_expires_at {
            Some(end) if *end < expires_at => end.clone(),
            Some(_) | None => expires_at,
        };
        let digest = digest_of(&invitation);
        tracing::info!(by = %caller.principal, person = %person.name, "a person is invited");
        let invitation_of =
            Invitation { digest, scopes, expires_at: expires_at.clone(), key_expires_at };
        person.invitations.push(invitation_of);
        let person = self.store(person).await?.name;
        Ok(InvitationReport { invitation, person, expires_at, url: self.url.clone() })
    }

    /// Person of this name, if the giver may see the person.
    pub(super) fn person(&self, giver: &KeyGiver, name: &str) -> Result<Person, A2aError> {
        let parsed = name_of(name)?;
        let known = self.known.read().by_name.get(&parsed).cloned();
        known.filter(|person| giver.sees(person)).ok_or_else(|| {
            let why = format!("no person is named `{name}`; `a2a-hub person list` lists them");
            A2aError::invalid("name", why)
        })
    }

    /// Stored person that is like this: one whose removal could not be stored before, or the
    /// revocation of whose key.
    pub(super) async fn stored(&self, is_it: impl Fn(&Person) -> bool) -> Option<Person> {
        let stored = self.storage.as_ref()?.people().await.ok()?;
        stored.into_iter().find(is_it)
    }

    /// Stores a person, and takes the change into account once it is stored.
    pub(super) async fn store(&self, person: Person) -> Result<PersonInfo, A2aError> {
        if let Some(storage) = &self.storage {
            let stored = storage.set_person(&person).await;
            stored.map_err(|why| A2aError::from(HubError::from(why)))?;
        }
        let info = person_info(&person);
        self.known.write().set(person);
        Ok(info)
    }
}

/// Caller that changes people and keys: a person with the scope `admin`, or the operator.
pub(super) struct KeyGiver(Option<PersonRights>);

impl KeyGiver {
    /// True if the person is one of those that the caller manages.
    pub(super) fn sees(&self, person: &Person) -> bool {
        self.0.as_ref().is_none_or(|rights| rights.tenant == person.tenant)
    }

    /// Refuses scopes that the caller does not have, in keys of `person`.
    fn may_give(&self, scopes: &KeyScopes, person: &PersonName) -> Result<(), A2aError> {
        match &self.0 {
            Some(rights) => rights.may_give(scopes, person).map_err(|why| denied(&why)),
            None => Ok(()),
        }
    }

    /// Refuses a key that counts longer than that of the caller.
    fn may_last_until(&self, end: Option<&str>) -> Result<(), A2aError> {
        let key_end = self.0.as_ref().and_then(|rights| rights.expires_at.as_deref());
        match key_end {
            Some(key_end) if end.is_none_or(|end| end > key_end) => {
                let why = format!("must end before the key that makes it, at {key_end}");
                Err(A2aError::invalid("forMs", why))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn denied(why: &RightsDenied) -> A2aError {
    A2aError::new(ErrorKind::PermissionDenied, why.to_string())
}

/// Error of a removal that counts, and is not stored.
pub(super) fn returns(removed: &str, why: &StorageError) -> A2aError {
    let why = format!("{removed} until the hub restarts, and comes back then: {why}");
    A2aError::new(ErrorKind::Internal, why)
}

fn full(why: &str) -> A2aError {
    A2aError::new(ErrorKind::UnsupportedOperation, why)
}

pub(super) fn name_of(name: &str) -> Result<PersonName, A2aError> {
    PersonName::parse(name).map_err(|why| A2aError::invalid("name", why.to_string()))
}

fn role_of(role: &str) -> Result<PersonRole, A2aError> {
    PersonRole::parse(role)
        .ok_or_else(|| A2aError::invalid("role", "must be `owner`, `member` or `viewer`"))
}

fn scopes_of(scopes: &[String]) -> Result<KeyScopes, A2aError> {
    let parsed = KeyScopes::parse(scopes.iter().map(String::as_str));
    parsed.map_err(|why| A2aError::invalid("scopes", why.to_string()))
}

pub(super) fn person_info(person: &Person) -> PersonInfo {
    PersonInfo {
        name: person.name.to_string(),
        tenant: person.tenant.to_string(),
        role: person.role.name().to_owned(),
        added_at: person.added_at.clone(),
        keys: person.keys.iter().map(|key| key_info(&person.name, key)).collect(),
        invitations: person.invitations.len(),
    }
}

fn key_info(person: &PersonName, key: &ApiKey) -> KeyInfo {
    KeyInfo {
        id: key.id.clone(),
        person: person.to_string(),
        label: key.label.clone(),
        scopes: key.scopes.to_texts(),
        created_at: key.created_at.clone(),
        expires_at: key.expires_at.clone(),
        last_used_at: key.last_used_at.clone(),
        last_used_from: key.last_used_from.clone(),
    }
}
