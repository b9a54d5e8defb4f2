//! People whom the operator let in: their keys, which identify remote callers, and the
//! operations on them. [`a2a_hub_core::identity`] decides what each may do.

mod automation;
mod certificate;
mod change;
mod key_text;
#[cfg(test)]
mod tests;

pub use certificate::NoCertificate;
pub use key_text::KEY_PREFIX;

use a2a_hub_clock as clock;
use a2a_hub_core::{
    access_control::Principal,
    identity::{CertificateRules, Person, PersonName, PersonProof, PersonRights},
};
use a2a_hub_store::PeopleStore;
use key_text::{digest_of, id_of_key};
use parking_lot::RwLock;
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Age of the stored time of a key's latest request from which it is stored anew.
const LAST_USE_AGE: Duration = Duration::from_hours(1);

/// The people of a hub: in the store, and a copy in memory that identifies callers.
#[derive(Default)]
pub struct People {
    /// None for a hub that stores nobody.
    storage: Option<Arc<dyn PeopleStore>>,
    known: RwLock<KnownPeople>,
    /// Held during a change, so that the copy has the order of the store.
    changing: Mutex<()>,
    /// URL of the hub for invitations; none if the hub serves no HTTP.
    url: Option<String>,
    /// Error of reading the stored people, of whom nobody is known then.
    unreadable: Option<String>,
    /// People of client certificates.
    certificates: CertificateRules,
}

#[derive(Default)]
struct KnownPeople {
    by_name: BTreeMap<PersonName, Person>,
    /// Person of each key, by the key's id.
    keys: HashMap<String, KnownKey>,
    /// Known client certificates of each person.
    certified: HashMap<PersonName, CertifiedPerson>,
    /// True once this process has known a person.
    has_known_any: bool,
}

struct KnownKey {
    person: PersonName,
    /// Cancelled when the key is revoked, which ends its streams.
    revoked: CancellationToken,
}

/// Client certificates of a person.
#[derive(Default)]
struct CertifiedPerson {
    /// Cancelled when the person is removed.
    removed: CancellationToken,
    /// Last second of each certificate, by the text of its rule's name: the latest one that came
    /// with a request. Seconds since 1970.
    ends: HashMap<String, u64>,
}

/// Person whose key came with a request.
pub struct ProvenPerson {
    /// The person, by this key.
    pub principal: Principal,
    /// Cancelled when the key is revoked.
    pub revoked: CancellationToken,
    /// Time until the key expires; `None` if it does not.
    pub expires_in: Option<Duration>,
    /// True if the time of this request is to be stored ([`People::store_last_use`]).
    pub is_new_use: bool,
}

/// Reason why a key identifies nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPerson {
    /// The text is no complete key.
    #[error(
        "the API key in `Authorization` is incomplete or mistyped: it begins with `a2ah_` and has 91 characters"
    )]
    Damaged,
    /// No person has the key.
    #[error(
        "the API key in `Authorization` is none of this hub's, or was revoked; the operator makes a new one with `a2a-hub key new`"
    )]
    Unknown,
    /// The key has expired.
    #[error(
        "the API key in `Authorization` has expired; the operator makes a new one with `a2a-hub key new`"
    )]
    Expired,
}

impl KnownPeople {
    /// Replaces a person, and ends the keys that the person has no more.
    fn set(&mut self, person: Person) {
        self.forget_keys(&person.name, |id| person.keys.iter().any(|key| key.id == id));
        for key in &person.keys {
            let (name, revoked) = (person.name.clone(), CancellationToken::new());
            self.keys.entry(key.id.clone()).or_insert(KnownKey { person: name, revoked });
        }
        self.certified.entry(person.name.clone()).or_default();
        self.by_name.insert(person.name.clone(), person);
        self.has_known_any = true;
    }

    fn person_of_key(&self, id: &str) -> Option<&Person> {
        self.by_name.get(&self.keys.get(id)?.person)
    }

    fn forget(&mut self, name: &PersonName) {
        self.forget_keys(name, |_| false);
        if let Some(certified) = self.certified.remove(name) {
            certified.removed.cancel();
        }
        self.by_name.remove(name);
    }

    fn forget_keys(&mut self, name: &PersonName, stays: impl Fn(&str) -> bool) {
        self.keys.retain(|id, key| {
            let retained = key.person != *name || stays(id);
            if !retained {
                key.revoked.cancel();
            }
            retained
        });
    }
}

impl People {
    /// Reads the people in a store. `url` is that of the hub, for invitations. If the store cannot
    /// be read, nobody is known, and the operations on people say why.
    pub async fn open(storage: Arc<dyn PeopleStore>, url: Option<String>) -> Self {
        let mut known = KnownPeople::default();
        let unreadable = match storage.people().await {
            Ok(people) => {
                people.into_iter().for_each(|person| known.set(person));
                None
            }
            Err(why) => {
                tracing::error!(%why, "cannot read the people of this hub, so none of their keys counts");
                Some(why.to_string())
            }
        };
        let (known, changing) = (RwLock::new(known), Mutex::default());
        let certificates = CertificateRules::default();
        Self { storage: Some(storage), known, changing, url, unreadable, certificates }
    }

    /// Sets the people of client certificates.
    #[must_use]
    pub fn with_certificates(self, certificates: CertificateRules) -> Self {
        Self { certificates, ..self }
    }

    /// True if people have keys to this hub, or had some since it started, so that over HTTP the
    /// kernel identifies nobody. The last person who is removed must not become the operator by
    /// leaving the key out.
    pub fn any(&self) -> bool {
        self.unreadable.is_some() || self.known.read().has_known_any
    }

    /// Reason why the stored people cannot be read, if so.
    pub fn failure(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Identifies the person whose key this is. `from` is the address of the caller, which is
    /// stored with the use of the key.
    ///
    /// # Errors
    ///
    /// If it is no person's key, or counts no more.
    pub fn identify(&self, key: &str, from: Option<IpAddr>) -> Result<ProvenPerson, NoPerson> {
        let id = id_of_key(key).ok_or(NoPerson::Damaged)?;
        let (digest, now) = (digest_of(key), clock::now());
        let known = self.known.read();
        let KnownKey { person: name, revoked } = known.keys.get(id).ok_or(NoPerson::Unknown)?;
        let person = known.person_of_key(id).ok_or(NoPerson::Unknown)?;
        let stored = person.keys.iter().find(|one| one.id == id).ok_or(NoPerson::Unknown)?;
        // A digest needs no comparison in constant time: nobody can choose its first letters.
        if stored.digest != digest {
            return Err(NoPerson::Unknown);
        }
        if stored.has_expired(&now) {
            return Err(NoPerson::Expired);
        }
        let is_late = |at: &String| clock::age(at) > LAST_USE_AGE;
        let from = from.map(|from| from.to_string());
        let proven = ProvenPerson {
            principal: Principal::Person { name: name.clone(), key: id.to_owned() },
            revoked: revoked.clone(),
            expires_in: stored.expires_at.as_deref().map(clock::until),
            is_new_use: stored.last_used_at.as_ref().is_none_or(is_late),
        };
        let (name, id) = (name.clone(), id.to_owned());
        drop(known);
        if proven.is_new_use {
            let mut known = self.known.write();
            let keys = known.by_name.get_mut(&name).map(|person| &mut person.keys);
            if let Some(key) = keys.and_then(|keys| keys.iter_mut().find(|one| one.id == id)) {
                (key.last_used_at, key.last_used_from) = (Some(now), from);
            }
        }
        Ok(proven)
    }

    /// True if a person has the key with this id, be it expired: it was not revoked.
    pub fn knows_key(&self, id: &str) -> bool {
        self.known.read().keys.contains_key(id)
    }

    /// Rights of a person with the credentials of a [`PersonProof`]; `None` if one of them counts
    /// no more. They end with the first of these.
    pub fn rights(&self, name: &PersonName, proof: &str) -> Option<PersonRights> {
        let (known, proof) = (self.known.read(), PersonProof::parse(proof));
        let person = known.by_name.get(name)?;
        let mut rights = proof.rights(
            name,
            &self.certificates,
            |key| person.rights(key, &clock::now()),
            |scopes| person.rights_within(scopes),
        )?;
        let end = proof.certificate.and_then(|rule| known.certificate_end(name, rule));
        rights.expires_at = [rights.expires_at, end].into_iter().flatten().min();
        Some(rights)
    }

    /// Stores the times of the latest requests of a person's keys. A failure is logged: only the
    /// list of keys is out of date then.
    pub async fn store_last_use(&self, by: &Principal) {
        let Principal::Person { name, .. } = by else { return };
        let _changing = self.changing.lock().await;
        let person = self.known.read().by_name.get(name).cloned();
        let (Some(person), Some(storage)) = (person, &self.storage) else { return };
        if let Err(why) = storage.set_person(&person).await {
            tracing::warn!(person = %name, %why, "cannot store when a key was used");
        }
    }
}
