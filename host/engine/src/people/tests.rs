//! Tests of people: their keys, invitations, and what becomes of them.

use super::*;
use a2a_hub_core::{
    access_control::Caller,
    identity::{
        AutomationKind, CertificateFingerprint, CertificateName, CertificateNames, CertificateRule,
        CertificateRules, KeyScope, KeyScopes, OwnedAutomation,
    },
};
use a2a_hub_protocol::{
    error::A2aError,
    id::TenantId,
    operation::{KeyTerms, NewKeyReport, PeopleReport, PeopleRequest},
};
use a2a_hub_store::memory::MemoryStorage;

/// People in a store.
struct TestPeople {
    people: People,
    storage: Arc<MemoryStorage>,
}

impl TestPeople {
    async fn new() -> Self {
        Self::with(Arc::new(MemoryStorage::default())).await
    }

    async fn with(storage: Arc<MemoryStorage>) -> Self {
        let people = People::open(storage.clone(), Some("http://hub.example".to_owned())).await;
        Self { people, storage }
    }

    /// The same people after a restart.
    async fn restarted(&self) -> Self {
        Self::with(self.storage.clone()).await
    }

    async fn perform(&self, request: PeopleRequest) -> Result<PeopleReport, A2aError> {
        self.perform_with(request, &[]).await
    }

    async fn perform_with(
        &self,
        request: PeopleRequest,
        automation: &[OwnedAutomation<'_>],
    ) -> Result<PeopleReport, A2aError> {
        let tenant = TenantId::parse("acme").unwrap();
        let caller = Caller { principal: Principal::Operator, tenant };
        self.people.perform(&caller, request, automation).await
    }

    async fn add(&self, name: &str, role: &str) -> Result<PeopleReport, A2aError> {
        let (name, role) = (name.to_owned(), role.to_owned());
        self.perform(PeopleRequest::Add { name, role }).await
    }

    async fn key(&self, scopes: &[&str], for_ms: u64) -> NewKeyReport {
        let terms = KeyTerms {
            person: "ada".to_owned(),
            label: "laptop".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            for_ms,
        };
        let report = self.perform(PeopleRequest::NewKey(terms)).await.unwrap();
        let PeopleReport::NewKey(key) = report else { panic!("{report:?}") };
        key
    }

    async fn invitation(&self, for_ms: u64) -> String {
        let (label, scopes) = (String::new(), vec!["read".to_owned()]);
        let terms = KeyTerms { person: "ada".to_owned(), label, scopes, for_ms };
        let report = self.perform(PeopleRequest::Invite(terms)).await.unwrap();
        let PeopleReport::Invitation(report) = report else { panic!("{report:?}") };
        assert_eq!(report.url.as_deref(), Some("http://hub.example"));
        report.invitation
    }

    async fn join(&self, invitation: &str) -> Result<NewKeyReport, A2aError> {
        let (invitation, label) = (invitation.to_owned(), "phone".to_owned());
        let report = self.perform(PeopleRequest::Join { invitation, label }).await?;
        let PeopleReport::NewKey(key) = report else { panic!("{report:?}") };
        Ok(key)
    }

    fn who(&self, key: &str) -> Result<String, NoPerson> {
        self.people.identify(key, None).map(|proven| proven.principal.identity())
    }
}

fn removal(name: &str) -> PeopleRequest {
    PeopleRequest::Remove { name: name.to_owned(), to: None, dry_run: false }
}

#[tokio::test]
async fn key_identifies_its_person_until_revoked() {
    let it = TestPeople::new().await;
    assert!(!it.people.any());
    it.add("ada", "member").await.unwrap();
    let key = it.key(&["read"], 0).await;
    assert_eq!((&*key.tenant, &*key.role), ("acme", "member"));
    assert_eq!(it.who(&key.secret), Ok("person:ada".to_owned()));
    assert!(it.people.any());
    let stream = it.people.identify(&key.secret, None).unwrap().revoked;
    // The secret is nowhere in the store.
    let stored = format!("{:?}", it.storage.people().await.unwrap());
    assert!(stored.contains(&key.key.id) && !stored.contains(&key.secret[20..60]), "{stored}");
    assert_eq!(it.restarted().await.who(&key.secret), Ok("person:ada".to_owned()));
    it.perform(PeopleRequest::RevokeKey { id: key.key.id.clone() }).await.unwrap();
    assert!(stream.is_cancelled());
    assert_eq!(it.who(&key.secret), Err(NoPerson::Unknown));
    assert_eq!(it.restarted().await.who(&key.secret), Err(NoPerson::Unknown));
    let again = it.perform(PeopleRequest::RevokeKey { id: key.key.id }).await.unwrap_err();
    assert!(again.message.contains("a2a-hub key list"), "{again}");
}

#[tokio::test]
async fn other_texts_identify_nobody() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    let key = it.key(&[], 0).await.secret;
    let other = it.key(&[], 0).await.secret;
    // The id of one key with the secret of another one, and a checksum that is right.
    let mixed = format!("{}{}", &key[..17], &other[17..other.len() - 9]);
    let mixed = format!("{mixed}_{}", &digest_of(&mixed)[..8]);
    assert_eq!(it.who(&mixed), Err(NoPerson::Unknown));
    for damaged in ["", "a2ah_", &key[..key.len() - 1], &format!("{key} "), &key.to_uppercase()] {
        assert_eq!(it.who(damaged), Err(NoPerson::Damaged), "{damaged}");
    }
    let stored = it.storage.people().await.unwrap();
    let digest = &stored[0].keys[0].digest;
    assert_eq!(it.who(digest), Err(NoPerson::Damaged), "the digest is no key");
}

#[tokio::test]
async fn removed_person_comes_in_no_more() {
    let it = TestPeople::new().await;
    it.add("ada", "owner").await.unwrap();
    it.add("bob", "viewer").await.unwrap();
    let key = it.key(&[], 0).await;
    let stream = it.people.identify(&key.secret, None).unwrap().revoked;
    let invitation = it.invitation(60_000).await;
    it.perform(removal("ada")).await.unwrap();
    assert!(stream.is_cancelled());
    assert_eq!(it.who(&key.secret), Err(NoPerson::Unknown));
    assert!(it.join(&invitation).await.is_err());
    let name = PersonName::parse("ada").unwrap();
    assert_eq!(it.people.rights(&name, &key.key.id), None);
    assert!(it.people.any(), "the other one stays");
    it.perform(removal("bob")).await.unwrap();
    assert!(it.people.any(), "until the hub restarts");
    assert!(!it.restarted().await.people.any());
}

#[tokio::test]
async fn role_counts_for_open_keys_at_once() {
    let it = TestPeople::new().await;
    it.add("ada", "viewer").await.unwrap();
    let key = it.key(&[], 0).await;
    let stream = it.people.identify(&key.secret, None).unwrap().revoked;
    let (name, role) = ("ada".to_owned(), "owner".to_owned());
    it.perform(PeopleRequest::SetRole { name, role }).await.unwrap();
    let name = PersonName::parse("ada").unwrap();
    let rights = it.people.rights(&name, &key.key.id).unwrap();
    assert_eq!(rights.role.name(), "owner");
    assert!(!stream.is_cancelled(), "the key stays");
}

#[tokio::test]
async fn invitation_gives_one_key() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    let invitation = it.invitation(60_000).await;
    let (one, other) = tokio::join!(it.join(&invitation), it.join(&invitation));
    assert!(one.is_ok() != other.is_ok(), "of two at the same time, one gets it");
    let key = one.or(other).unwrap();
    assert_eq!((&*key.key.label, &key.key.scopes[..]), ("phone", &["read".to_owned()][..]));
    assert_eq!(it.who(&key.secret), Ok("person:ada".to_owned()));
    assert!(it.restarted().await.join(&invitation).await.is_err(), "also after a restart");
    let expired = it.invitation(1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(it.join(&expired).await.is_err());
    for wrong in ["", "a2ai_", &key.secret] {
        assert!(it.join(wrong).await.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn expired_key_is_told_apart() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    let key = it.key(&[], 1).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(it.who(&key.secret), Err(NoPerson::Expired));
    let name = PersonName::parse("ada").unwrap();
    assert_eq!(it.people.rights(&name, &key.key.id), None);
    assert!(it.people.knows_key(&key.key.id), "it was not revoked");
    it.perform(PeopleRequest::RevokeKey { id: key.key.id.clone() }).await.unwrap();
    assert!(!it.people.knows_key(&key.key.id));
}

#[tokio::test]
async fn wrong_names_roles_and_scopes_are_refused() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    for (name, role, why) in [
        ("ada", "member", "is named `ada` already"),
        ("Ada", "member", "lower-case letters"),
        ("bob", "admin", "`owner`, `member` or `viewer`"),
    ] {
        let refused = it.add(name, role).await.unwrap_err();
        assert!(refused.message.contains(why), "{refused}");
    }
    let terms = KeyTerms {
        person: "ada".to_owned(),
        label: String::new(),
        scopes: vec!["root".to_owned()],
        for_ms: 0,
    };
    let refused = it.perform(PeopleRequest::NewKey(terms.clone())).await.unwrap_err();
    assert!(refused.message.contains("`root` is no scope"), "{refused}");
    let terms = KeyTerms { person: "eve".to_owned(), scopes: Vec::new(), ..terms };
    assert!(it.perform(PeopleRequest::NewKey(terms)).await.is_err());
    for _ in 0..20 {
        it.key(&[], 0).await;
    }
    let terms =
        KeyTerms { person: "ada".to_owned(), label: String::new(), scopes: Vec::new(), for_ms: 0 };
    let refused = it.perform(PeopleRequest::NewKey(terms)).await.unwrap_err();
    assert!(refused.message.contains("has 20 keys"), "{refused}");
}

#[tokio::test]
async fn use_of_key_is_remembered() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    let key = it.key(&[], 0).await.secret;
    let from = Some("192.0.2.7".parse().unwrap());
    let first = it.people.identify(&key, from).unwrap();
    assert!(first.is_new_use && !it.people.identify(&key, from).unwrap().is_new_use);
    it.people.store_last_use(&first.principal).await;
    let stored = it.storage.people().await.unwrap();
    assert_eq!(stored[0].keys[0].last_used_from.as_deref(), Some("192.0.2.7"));
}

/// A schedule of ada, which passes to bob and is accepted by the right one only.
#[tokio::test]
async fn automation_passes_on_and_waits_for_acceptance() {
    let it = TestPeople::new().await;
    for (name, role) in [("ada", "member"), ("bob", "viewer"), ("eve", "owner")] {
        it.add(name, role).await.unwrap();
    }
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|name| PersonName::parse(name).unwrap());
    let kind = AutomationKind::Schedule;
    let nightly = OwnedAutomation { kind, name: "nightly", owner: &ada };
    let runner = |people: &People| {
        people.runner(&nightly).map(|(name, _)| name.to_string()).map_err(|why| why.to_string())
    };
    assert_eq!(runner(&it.people), Ok("ada".to_owned()));
    let remove = async |it: &TestPeople, to: Option<&str>, dry_run: bool| {
        let (name, to) = ("ada".to_owned(), to.map(str::to_owned));
        let removal = PeopleRequest::Remove { name, to, dry_run };
        let report = it.perform_with(removal, &[nightly]).await?;
        let PeopleReport::Removed(report) = report else { panic!("{report:?}") };
        Ok::<_, A2aError>(report)
    };
    for (to, why) in [("ada", "is the person who is removed"), ("joe", "no person is named `joe`")]
    {
        let refused: A2aError = remove(&it, Some(to), false).await.unwrap_err();
        assert!(refused.message.contains(why), "{refused}");
    }
    let described = remove(&it, Some("bob"), true).await.unwrap();
    assert_eq!((described.removed, &*described.automation), (false, &["nightly".to_owned()][..]));
    assert_eq!(runner(&it.people), Ok("ada".to_owned()), "it was only described");
    remove(&it, Some("bob"), false).await.unwrap();

    // The mapping is in the store.
    let it = it.restarted().await;
    assert!(runner(&it.people).unwrap_err().contains("until bob accepts it"));
    let refused = it.people.accept(&nightly, Some(&eve)).await.unwrap_err();
    assert!(refused.message.contains("it passed to bob"), "{refused}");
    it.storage.refuse(true);
    it.people.accept(&nightly, Some(&bob)).await.unwrap_err();
    assert!(runner(&it.people).is_err(), "what is not stored does not count");
    it.storage.refuse(false);
    it.people.accept(&nightly, Some(&bob)).await.unwrap();
    let it = it.restarted().await;
    assert!(runner(&it.people).unwrap_err().contains("bob is a viewer here"));
    let (name, role) = ("bob".to_owned(), "member".to_owned());
    it.perform(PeopleRequest::SetRole { name, role }).await.unwrap();
    assert_eq!(runner(&it.people), Ok("bob".to_owned()));
    // It heals when the configured owner is there again.
    it.add("ada", "member").await.unwrap();
    assert_eq!(runner(&it.people), Ok("ada".to_owned()));
    let refused = it.people.accept(&nightly, None).await.unwrap_err();
    assert!(refused.message.contains("it runs as ada already"), "{refused}");
    remove(&it, None, false).await.unwrap();
    assert!(runner(&it.people).unwrap_err().contains("was removed, or was never added"));
}

#[tokio::test]
async fn automation_passes_within_its_tenant_only() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    let caller = Caller { principal: Principal::Operator, tenant: TenantId::default() };
    let (name, role) = ("zoe".to_owned(), "member".to_owned());
    it.people.perform(&caller, PeopleRequest::Add { name, role }, &[]).await.unwrap();
    let (name, to) = ("ada".to_owned(), Some("zoe".to_owned()));
    let removal = PeopleRequest::Remove { name, to, dry_run: false };
    let refused = it.perform(removal).await.unwrap_err();
    assert!(refused.message.contains("belongs to another tenant"), "{refused}");
    assert!(
        it.people
            .holder(&OwnedAutomation {
                kind: AutomationKind::Trigger,
                name: "review",
                owner: &PersonName::parse("ada").unwrap(),
            })
            .is_some(),
        "nobody was removed"
    );
}

/// A full disk: the keys end, and the automation stops, until the removal is stored.
#[tokio::test]
async fn unstored_removal_can_be_repeated() {
    let it = TestPeople::new().await;
    it.add("ada", "member").await.unwrap();
    it.add("bob", "member").await.unwrap();
    let key = it.key(&[], 0).await;
    let ada = PersonName::parse("ada").unwrap();
    let review = OwnedAutomation { kind: AutomationKind::Trigger, name: "review", owner: &ada };
    let removal = || {
        let (name, to) = ("ada".to_owned(), Some("bob".to_owned()));
        PeopleRequest::Remove { name, to, dry_run: false }
    };
    it.storage.refuse(true);
    it.perform_with(removal(), &[review]).await.unwrap_err();
    assert_eq!(it.who(&key.secret), Err(NoPerson::Unknown));
    assert!(it.people.runner(&review).is_err());
    it.storage.refuse(false);
    it.perform_with(removal(), &[review]).await.unwrap();
    let held = it.restarted().await.people.runner(&review).unwrap_err().to_string();
    assert!(held.contains("until bob accepts it"), "{held}");
}

#[tokio::test]
async fn certificate_counts_while_its_person_is_known() {
    let names = |uri: &str| CertificateNames {
        fingerprint: CertificateFingerprint::of_digest([1; 32]),
        twins: Vec::new(),
        dns: Vec::new(),
        uris: vec![uri.to_owned()],
    };
    let rule = |uri: &str, person: &str| CertificateRule {
        name: CertificateName::parse_san(uri).unwrap(),
        person: PersonName::parse(person).unwrap(),
        scopes: KeyScopes::parse(["read"]).unwrap(),
    };
    let rules = vec![rule("spiffe://corp/ada", "ada"), rule("spiffe://corp/bob", "bob")];
    let TestPeople { people, storage } = TestPeople::new().await;
    let it = TestPeople { people: people.with_certificates(CertificateRules::new(rules)), storage };
    let prove = |uri: &str| it.people.identify_certificate(&names(uri), u64::MAX);
    assert!(matches!(prove("spiffe://corp/ada"), Err(NoCertificate::NoPerson(_))));
    it.add("ada", "owner").await.unwrap();
    let proven = prove("spiffe://corp/ada").unwrap();
    let Principal::Person { name, key } = &proven.principal else { panic!("no person") };
    assert_eq!((name.as_str(), key.as_str()), ("ada", "cert:spiffe://corp/ada"));
    let rights = it.people.rights(name, key).unwrap();
    assert!(rights.require(KeyScope::Read).is_ok() && rights.require(KeyScope::Send).is_err());
    let made = it.key(&["read", "send"], 0).await;
    let both = format!("{}+{key}", made.key.id);
    let scopes = it.people.rights(name, &both).unwrap().scopes.to_texts();
    assert_eq!(scopes, ["read"], "both narrow");
    let sending = it.key(&["send"], 0).await;
    assert_eq!(it.people.rights(name, &format!("{}+{key}", sending.key.id)), None);
    assert!(it.people.rights(name, "cert:spiffe://corp/bob").is_none(), "another one's");
    assert!(prove("spiffe://corp/bob").is_err() && prove("spiffe://corp/eve").is_err());
    let removal = PeopleRequest::Remove { name: "ada".to_owned(), to: None, dry_run: false };
    it.perform(removal).await.unwrap();
    assert!(proven.revoked.is_cancelled(), "streams end");
    assert!(prove("spiffe://corp/ada").is_err() && it.people.rights(name, key).is_none());
}

impl TestPeople {
    /// Performs a request as a person with a key of these scopes.
    async fn perform_as(
        &self,
        (person, scopes): (&str, &[&str]),
        for_ms: u64,
        request: PeopleRequest,
    ) -> Result<PeopleReport, A2aError> {
        let terms = KeyTerms {
            person: person.to_owned(),
            label: "admin".to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            for_ms,
        };
        let report = self.perform(PeopleRequest::NewKey(terms)).await.unwrap();
        let PeopleReport::NewKey(made) = report else { panic!("{report:?}") };
        let principal = self.people.identify(&made.secret, None).unwrap().principal;
        let tenant = TenantId::parse("acme").unwrap();
        let done = self.people.perform(&Caller { principal, tenant }, request, &[]).await;
        self.perform(PeopleRequest::RevokeKey { id: made.key.id }).await.unwrap();
        done
    }
}

fn terms(person: &str, scopes: &[&str], for_ms: u64) -> KeyTerms {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    KeyTerms { person: person.to_owned(), label: String::new(), scopes, for_ms }
}

/// Rows: scopes of an owner's key, and scopes of the key that it makes for whom.
#[tokio::test]
async fn owner_gives_no_more_than_the_own_key_has() {
    let it = TestPeople::new().await;
    it.add("ada", "owner").await.unwrap();
    it.add("bob", "member").await.unwrap();
    let all = ["read", "send", "answer", "approve", "cancel", "push", "admin"];
    for (mine, whose, given, may) in [
        (&all[..], "bob", &[][..], true),
        (&all, "bob", &["read:own", "send:echo"], true),
        (&all, "bob", &["apply"], false),
        (&all, "bob", &["admin:grant"], false),
        (&all, "ada", &["admin"], true),
        (&["admin", "read"], "bob", &[], false),
        (&["admin", "read"], "bob", &["send"], false),
        (&["admin", "read:own"], "bob", &["read:own"], false),
        (&["admin", "read:own"], "ada", &["read:own"], true),
        (&["admin", "admin:grant"], "ada", &["admin:grant"], false),
        (&["read"], "bob", &["read"], false),
    ] {
        let by = ("ada", mine);
        let key = PeopleRequest::NewKey(terms(whose, given, 0));
        let made = it.perform_as(by, 0, key).await;
        assert_eq!(made.is_ok(), may, "{mine:?} gives {given:?}: {made:?}");
        let invite = PeopleRequest::Invite(terms(whose, given, 60_000));
        assert_eq!(it.perform_as(by, 0, invite).await.is_ok(), may, "{mine:?} {given:?}");
        if let Ok(PeopleReport::NewKey(made)) = made {
            it.perform(PeopleRequest::RevokeKey { id: made.key.id }).await.unwrap();
        }
    }
    let key = PeopleRequest::NewKey(terms("ada", &["read"], 0));
    let bobs = it.perform_as(("bob", &["admin", "read"]), 0, key).await;
    assert!(bobs.unwrap_err().message.contains("a member here"), "no member manages people");
    // A person whose keys have more than the giver's is raised by nobody but the operator.
    it.perform(PeopleRequest::NewKey(terms("bob", &[], 0))).await.unwrap();
    let raise = |role: &str| PeopleRequest::SetRole { name: "bob".into(), role: role.into() };
    assert!(it.perform_as(("ada", &["admin", "read"]), 0, raise("owner")).await.is_err());
    assert!(it.perform_as(("ada", &["admin", "read"]), 0, raise("viewer")).await.is_ok());
    assert!(it.perform_as(("ada", &all), 0, raise("owner")).await.is_ok());
}

/// An owner neither sees nor changes people of another tenant.
#[tokio::test]
async fn owner_manages_people_of_the_own_tenant() {
    let it = TestPeople::new().await;
    it.add("ada", "owner").await.unwrap();
    let foreign = Caller { principal: Principal::Operator, tenant: TenantId::default() };
    let add = PeopleRequest::Add { name: "zoe".to_owned(), role: "member".to_owned() };
    it.people.perform(&foreign, add, &[]).await.unwrap();
    let theirs =
        it.people.perform(&foreign, PeopleRequest::NewKey(terms("zoe", &[], 0)), &[]).await;
    let Ok(PeopleReport::NewKey(theirs)) = theirs else { panic!("{theirs:?}") };
    let admin = ("ada", &["admin", "read"][..]);
    let unknown = "zoe".to_owned();
    for request in [
        PeopleRequest::Remove { name: unknown.clone(), to: None, dry_run: false },
        PeopleRequest::SetRole { name: unknown, role: "viewer".to_owned() },
        PeopleRequest::NewKey(terms("zoe", &["read"], 0)),
        PeopleRequest::Invite(terms("zoe", &["read"], 1000)),
        PeopleRequest::RevokeKey { id: theirs.key.id },
    ] {
        let refused = it.perform_as(admin, 0, request).await.unwrap_err();
        let looks_unknown = refused.message.contains("no person is named")
            || refused.message.contains("no key has the id");
        assert!(looks_unknown, "{refused}");
    }
    let listed = it.perform_as(admin, 0, PeopleRequest::List).await.unwrap();
    let PeopleReport::List(listed) = listed else { panic!("{listed:?}") };
    assert_eq!(listed.people.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["ada"]);
    let add = |name: String| PeopleRequest::Add { name, role: "member".to_owned() };
    let added = it.perform_as(admin, 0, add("eve".to_owned())).await.unwrap();
    let PeopleReport::Person(added) = added else { panic!("{added:?}") };
    assert_eq!(added.tenant, "acme");
    for number in 0..48 {
        it.perform_as(admin, 0, add(format!("p{number}"))).await.unwrap();
    }
    let full = it.perform_as(admin, 0, add("one-more".to_owned())).await.unwrap_err();
    assert!(full.message.contains("limit for its owners"), "{full}");
    it.add("by-operator", "member").await.unwrap();
}

/// A key that expires makes none that counts longer, also by an invitation.
#[tokio::test]
async fn made_keys_end_with_the_key_that_made_them() {
    let it = TestPeople::new().await;
    it.add("ada", "owner").await.unwrap();
    it.add("bob", "member").await.unwrap();
    let admin = ("ada", &["admin", "read"][..]);
    for (for_ms, may) in [(0, false), (120_000, false), (30_000, true)] {
        let key = PeopleRequest::NewKey(terms("bob", &["read"], for_ms));
        assert_eq!(it.perform_as(admin, 60_000, key).await.is_ok(), may, "{for_ms}");
    }
    let invite = PeopleRequest::Invite(terms("bob", &["read"], 3_600_000));
    let invited = it.perform_as(admin, 60_000, invite).await.unwrap();
    let PeopleReport::Invitation(invited) = invited else { panic!("{invited:?}") };
    let joined = it.join(&invited.invitation).await.unwrap();
    assert_eq!(joined.key.expires_at.as_ref(), Some(&invited.expires_at));
}

/// The configuration names people who are not known: an owner of a tenant must not become one of
/// them, whose schedules run with the operator's agents.
#[tokio::test]
async fn owner_adds_nobody_whom_configuration_names() {
    let it = TestPeople::new().await;
    let scopes = KeyScopes::parse(["apply"]).unwrap();
    let name = CertificateName::parse_san("spiffe://corp/olga").unwrap();
    let rule = CertificateRule { name, person: PersonName::parse("olga").unwrap(), scopes };
    let TestPeople { people, storage } = it;
    let people = people.with_certificates(CertificateRules::new(vec![rule]));
    let it = TestPeople { people, storage };
    it.add("ada", "owner").await.unwrap();
    let all = ["read", "send", "answer", "approve", "cancel", "push", "admin"];
    let all: Vec<_> = all.iter().map(|scope| (*scope).to_owned()).collect();
    let key = KeyTerms { scopes: all, ..terms("ada", &[], 0) };
    let report = it.perform(PeopleRequest::NewKey(key)).await.unwrap();
    let PeopleReport::NewKey(key) = report else { panic!("{report:?}") };
    let principal = it.people.identify(&key.secret, None).unwrap().principal;
    let caller = Caller { principal, tenant: TenantId::parse("acme").unwrap() };
    let (eve, bob) = (PersonName::parse("eve").unwrap(), PersonName::parse("bob").unwrap());
    let of = |owner| OwnedAutomation { kind: AutomationKind::Schedule, name: "nightly", owner };
    let add = |name: &str| PeopleRequest::Add { name: name.to_owned(), role: "viewer".to_owned() };
    let raise = |name: &str| {
        let (name, role) = (name.to_owned(), "member".to_owned());
        PeopleRequest::SetRole { name, role }
    };
    for name in ["eve", "olga"] {
        let refused = it.people.perform(&caller, add(name), &[of(&eve)]).await.unwrap_err();
        assert!(refused.message.contains("the operator adds this person"), "{refused}");
        it.perform_with(add(name), &[of(&eve)]).await.unwrap();
    }
    // A higher role counts for certificates, too: `apply` is none of ada's scopes.
    assert!(it.people.perform(&caller, raise("olga"), &[]).await.is_err());
    it.people.perform(&caller, add("bob"), &[]).await.unwrap();
    it.people.perform(&caller, raise("bob"), &[of(&bob)]).await.unwrap();
}
