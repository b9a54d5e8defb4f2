//! Contract tests for people.

use super::at;
use crate::Storage;
use a2a_hub_core::identity::{
    ApiKey, InheritedAutomation, KeyScopes, Person, PersonName, PersonRole,
};
use a2a_hub_protocol::id::TenantId;

fn person(name: &str, role: PersonRole) -> Person {
    Person {
        name: PersonName::parse(name).unwrap(),
        tenant: TenantId::parse("acme").unwrap(),
        role,
        added_at: at(0),
        keys: vec![ApiKey {
            id: "0a1b2c3d4e5f".to_owned(),
            digest: "ab".to_owned(),
            label: "laptop'\"\n".to_owned(),
            scopes: KeyScopes::parse(["read", "send:echo"]).unwrap(),
            created_at: at(1),
            expires_at: Some(at(2)),
            last_used_at: None,
            last_used_from: None,
        }],
        invitations: Vec::new(),
        inherited: Vec::new(),
    }
}

pub(super) async fn people_are_replaced_by_name(storage: &impl Storage) {
    assert_eq!(storage.people().await, Ok(Vec::new()));
    let (ada, bob) = (person("ada", PersonRole::Owner), person("bob", PersonRole::Viewer));
    storage.set_person(&bob).await.unwrap();
    storage.set_person(&person("ada", PersonRole::Member)).await.unwrap();
    storage.set_person(&ada).await.unwrap();
    assert_eq!(storage.people().await.unwrap(), [ada, bob.clone()]);
    let name = PersonName::parse("ada").unwrap();
    storage.remove_person(&name, &[]).await.unwrap();
    storage.remove_person(&name, &[]).await.unwrap();
    assert_eq!(storage.people().await.unwrap(), [bob]);
}

pub(super) async fn removal_passes_automation_on(storage: &impl Storage) {
    let (ada, mut bob) = (person("ada", PersonRole::Owner), person("bob", PersonRole::Member));
    let eve = person("eve", PersonRole::Viewer);
    for one in [&ada, &bob, &eve] {
        storage.set_person(one).await.unwrap();
    }
    let (name, owner) = ("nightly".to_owned(), ada.name.clone());
    bob.inherited.push(InheritedAutomation { name, owner, accepted: false });
    storage.remove_person(&ada.name, std::slice::from_ref(&bob)).await.unwrap();
    assert_eq!(storage.people().await.unwrap(), [bob.clone(), eve.clone()]);
    bob.inherited[0].accepted = true;
    storage.set_person(&bob).await.unwrap();
    assert_eq!(storage.people().await.unwrap(), [bob, eve]);
}
