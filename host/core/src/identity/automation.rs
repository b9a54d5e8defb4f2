//! Owners of schedules and triggers: the person as whom a run begins its task, and automation that
//! passes from a removed person to another one, who must accept it.

use super::{
    Person, inherited_automation::InheritedAutomation, person_name::PersonName,
    rights::RightsDenied, scope::KeyScope,
};
use std::collections::BTreeMap;

/// Kind of automation, as the configuration and the commands name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutomationKind {
    /// Schedule.
    Schedule,
    /// Trigger.
    Trigger,
}

/// A schedule or trigger of the configuration that has an owner. No two of a hub have one name.
#[derive(Clone, Copy, Debug)]
pub struct OwnedAutomation<'a> {
    /// Kind.
    pub kind: AutomationKind,
    /// Name.
    pub name: &'a str,
    /// Owner by the configuration.
    pub owner: &'a PersonName,
}

/// Reason why a schedule or trigger starts no run. It ends once the reason is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AutomationSuspended {
    /// The owner is nobody of this hub.
    #[error(
        "its owner `{owner}` was removed, or was never added; `a2a-hub person add {owner}` adds the person, and \
         `{}.{name}.owner` in the configuration names another one", kind.word()
    )]
    NoOwner {
        /// Kind.
        kind: AutomationKind,
        /// Name.
        name: String,
        /// Owner by the configuration.
        owner: PersonName,
    },
    /// It passed to a person who has not accepted it.
    #[error(
        "its owner `{owner}` was removed, and it waits until {to} accepts it: `a2a-hub {} accept {name}`",
        kind.word()
    )]
    Offered {
        /// Kind.
        kind: AutomationKind,
        /// Name.
        name: String,
        /// Owner by the configuration, who was removed.
        owner: PersonName,
        /// Person who may accept it.
        to: PersonName,
    },
    /// The role of the owner does not suffice.
    #[error("its owner may not begin tasks: {0}")]
    Role(RightsDenied),
    /// The people of the hub cannot be read.
    #[error("it has an owner, and the people of this hub cannot be read: {0}")]
    Unreadable(String),
}

/// People of a hub, by their names.
pub type PeopleByName = BTreeMap<PersonName, Person>;

impl AutomationKind {
    /// Name of the section in the configuration, and of the command.
    pub fn word(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Trigger => "trigger",
        }
    }
}

impl OwnedAutomation<'_> {
    /// Person as whom the runs begin tasks, once accepted: the owner by the configuration while
    /// that is a person of the hub, and otherwise the person to whom it passed. The other value is
    /// true if that person accepted it.
    pub fn holder<'p>(&self, people: &'p PeopleByName) -> Option<(&'p Person, bool)> {
        if let Some(owner) = people.get(self.owner) {
            return Some((owner, true));
        }
        people.values().find_map(|person| {
            let inherited = person.inherited.iter().find(|one| self.is(one))?;
            Some((person, inherited.accepted))
        })
    }

    /// Person as whom a run begins its task now.
    ///
    /// # Errors
    ///
    /// The reason why no run may start.
    pub fn runner<'p>(&self, people: &'p PeopleByName) -> Result<&'p Person, AutomationSuspended> {
        let (kind, name, owner) = (self.kind, self.name.to_owned(), self.owner.clone());
        let Some((person, accepted)) = self.holder(people) else {
            return Err(AutomationSuspended::NoOwner { kind, name, owner });
        };
        if !accepted {
            return Err(AutomationSuspended::Offered {
                kind,
                name,
                owner,
                to: person.name.clone(),
            });
        }
        person.automation_rights().require(KeyScope::Send).map_err(AutomationSuspended::Role)?;
        Ok(person)
    }

    fn is(&self, inherited: &InheritedAutomation) -> bool {
        inherited.name == self.name && inherited.owner == *self.owner
    }

    /// Marks the automation as accepted by the person to whom it passed. Returns that person, to be
    /// stored; `None` if it passed to nobody, or its owner is a person of the hub.
    pub fn accepted(&self, people: &PeopleByName) -> Option<Person> {
        if people.contains_key(self.owner) {
            return None;
        }
        let mut person = self.holder(people)?.0.clone();
        person.inherited.iter_mut().filter(|one| self.is(one)).for_each(|one| one.accepted = true);
        Some(person)
    }
}

/// Changes of the others when `leaving` is removed: the automation that ran as that person passes
/// to `to`, who has to accept it. `all` is the automation of the configuration with owners; entries
/// about other automation are dropped, so that they do not accumulate.
pub fn pass_on(
    people: &PeopleByName,
    leaving: &PersonName,
    to: Option<&PersonName>,
    all: &[OwnedAutomation<'_>],
) -> Vec<Person> {
    let is_leaving = |one: &&OwnedAutomation<'_>| {
        one.holder(people).is_some_and(|(holder, _)| holder.name == *leaving)
    };
    let passes: Vec<_> = all.iter().filter(is_leaving).collect();
    let others = people.values().filter(|person| person.name != *leaving);
    let changed = others.filter_map(|person| {
        let mut after = person.clone();
        after.inherited.retain(|inherited| {
            all.iter().any(|one| one.is(inherited)) && !passes.iter().any(|one| one.is(inherited))
        });
        if to == Some(&person.name) {
            after.inherited.extend(passes.iter().map(|one| InheritedAutomation {
                name: one.name.to_owned(),
                owner: one.owner.clone(),
                accepted: false,
            }));
        }
        (after != *person).then_some(after)
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PersonRole;
    use a2a_hub_protocol::id::TenantId;

    fn name(text: &str) -> PersonName {
        PersonName::parse(text).unwrap()
    }

    fn people(all: &[(&str, PersonRole)]) -> PeopleByName {
        let person = |(text, role): &(&str, PersonRole)| {
            let person = Person {
                name: name(text),
                tenant: TenantId::default(),
                role: *role,
                added_at: String::new(),
                keys: Vec::new(),
                invitations: Vec::new(),
                inherited: Vec::new(),
            };
            (name(text), person)
        };
        all.iter().map(person).collect()
    }

    fn remove(people: &mut PeopleByName, who: &str, to: Option<&str>, all: &[OwnedAutomation<'_>]) {
        let changed = pass_on(people, &name(who), to.map(name).as_ref(), all);
        people.extend(changed.into_iter().map(|person| (person.name.clone(), person)));
        people.remove(&name(who));
    }

    /// Runner of the automation, or `who?` for one who has to accept it, or `-`.
    fn state(one: &OwnedAutomation<'_>, people: &PeopleByName) -> String {
        match one.runner(people) {
            Ok(person) => person.name.to_string(),
            Err(AutomationSuspended::Offered { to, .. }) => format!("{to}?"),
            Err(_) => "-".to_owned(),
        }
    }

    #[test]
    fn automation_passes_along_removed_people() {
        let (ada, bob) = (name("ada"), name("bob"));
        let kind = AutomationKind::Schedule;
        let of = |name, owner| OwnedAutomation { kind, name, owner };
        let all = [of("nightly", &ada), of("hourly", &bob)];
        let states = |people: &PeopleByName| all.map(|one| state(&one, people)).join(" ");
        let member = PersonRole::Member;
        let mut now = people(&[("ada", member), ("bob", member), ("eve", member)]);
        assert_eq!(states(&now), "ada bob");
        remove(&mut now, "ada", Some("bob"), &all);
        assert_eq!(states(&now), "bob? bob");
        let bob_accepts = all[0].accepted(&now).unwrap();
        assert!(all[1].accepted(&now).is_none(), "it did not pass to anybody");
        now.insert(bob_accepts.name.clone(), bob_accepts);
        assert_eq!(states(&now), "bob bob");
        // The next one has to accept both: also what the removed one had accepted.
        remove(&mut now, "bob", Some("eve"), &all);
        assert_eq!(states(&now), "eve? eve?");
        let back = people(&[("bob", member)]);
        now.extend(back);
        assert_eq!(states(&now), "eve? bob", "the configured owner counts first");
        remove(&mut now, "bob", None, &all);
        assert_eq!(states(&now), "eve? -");
        remove(&mut now, "eve", None, &all);
        assert_eq!(states(&now), "- -");
        now.extend(people(&[("ada", member)]));
        assert_eq!(states(&now), "ada -", "it runs again once the owner is there");
    }

    #[test]
    fn entries_of_removed_automation_are_dropped() {
        let ada = name("ada");
        let one = OwnedAutomation { kind: AutomationKind::Trigger, name: "review", owner: &ada };
        let mut now = people(&[("ada", PersonRole::Member), ("bob", PersonRole::Member)]);
        remove(&mut now, "ada", Some("bob"), &[one]);
        assert_eq!(now[&name("bob")].inherited.len(), 1);
        now.extend(people(&[("eve", PersonRole::Member)]));
        remove(&mut now, "eve", None, &[]);
        assert_eq!(now[&name("bob")].inherited, []);
    }

    #[test]
    fn refusal_says_way_out() {
        let ada = name("ada");
        let one = OwnedAutomation { kind: AutomationKind::Trigger, name: "review", owner: &ada };
        let none = one.runner(&people(&[])).unwrap_err().to_string();
        assert!(none.starts_with("its owner `ada` was removed, or was never added"), "{none}");
        assert!(none.contains("`trigger.review.owner` in the configuration"), "{none}");
        let viewer = one.runner(&people(&[("ada", PersonRole::Viewer)])).unwrap_err().to_string();
        assert!(viewer.contains("ada is a viewer here, who may not send"), "{viewer}");
        let mut now = people(&[("ada", PersonRole::Member), ("bob", PersonRole::Member)]);
        remove(&mut now, "ada", Some("bob"), &[one]);
        let offered = one.runner(&now).unwrap_err().to_string();
        assert!(offered.ends_with("until bob accepts it: `a2a-hub trigger accept review`"));
    }
}
