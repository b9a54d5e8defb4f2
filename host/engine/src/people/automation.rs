//! Schedules and triggers of people: the person as whom they run, and what becomes of them when the
//! person is removed.

use super::{
    People,
    change::{name_of, person_info, returns},
};
use a2a_hub_core::{
    access_control::Caller,
    identity::{AutomationSuspended, OwnedAutomation, Person, PersonName, pass_on},
};
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    id::TenantId,
    operation::RemovalReport,
};

impl People {
    /// Person as whom a run of this automation begins its task now, and the person's tenant.
    ///
    /// # Errors
    ///
    /// The reason why no run may start.
    pub(crate) fn runner(
        &self,
        automation: &OwnedAutomation<'_>,
    ) -> Result<(PersonName, TenantId), AutomationSuspended> {
        if let Some(why) = &self.unreadable {
            return Err(AutomationSuspended::Unreadable(why.clone()));
        }
        let known = self.known.read();
        let person = automation.runner(&known.by_name)?;
        Ok((person.name.clone(), person.tenant.clone()))
    }

    /// Person as whom this automation runs once accepted, the person's tenant, and whether it is
    /// accepted. `None` if its owner was removed, and it passed to nobody.
    pub(crate) fn holder(
        &self,
        automation: &OwnedAutomation<'_>,
    ) -> Option<(PersonName, TenantId, bool)> {
        let known = self.known.read();
        let (person, accepted) = automation.holder(&known.by_name)?;
        Some((person.name.clone(), person.tenant.clone(), accepted))
    }

    /// Accepts automation that passed to a person: for that person (`by`), or for the operator
    /// without one. To accept it again changes nothing.
    ///
    /// # Errors
    ///
    /// If it passed to nobody or to another person, or cannot be stored.
    pub(crate) async fn accept(
        &self,
        automation: &OwnedAutomation<'_>,
        by: Option<&PersonName>,
    ) -> Result<(), A2aError> {
        let _changing = self.changing.lock().await;
        let accepted = automation.accepted(&self.known.read().by_name);
        let (kind, name) = (automation.kind.word(), automation.name);
        let Some(person) = accepted else {
            let why = match self.runner(automation) {
                Ok((owner, _)) => format!("it runs as {owner} already"),
                Err(suspended) => suspended.to_string(),
            };
            let why = format!("the {kind} `{name}` waits for nobody to accept it: {why}");
            return Err(A2aError::invalid("name", why));
        };
        if let Some(by) = by.filter(|by| **by != person.name) {
            let why = format!(
                "{by} may not accept the {kind} `{name}`: it passed to {}, who may, and so may the operator",
                person.name
            );
            return Err(A2aError::new(ErrorKind::PermissionDenied, why));
        }
        let accepted = self.store(person).await?;
        tracing::info!(%kind, automation = name, owner = accepted.name, "automation was accepted");
        Ok(())
    }

    /// Removes a person, or describes what that would end (`dry_run`). The keys end at once, also
    /// if the store cannot be written. `to` is the person to whom the automation passes, and
    /// `automation` that of the configuration with owners.
    pub(super) async fn remove(
        &self,
        caller: &Caller,
        name: &str,
        to: Option<&str>,
        dry_run: bool,
        automation: &[OwnedAutomation<'_>],
    ) -> Result<RemovalReport, A2aError> {
        let _changing = self.changing.lock().await;
        let giver = self.giver(caller)?;
        let is_named = |person: &Person| person.name.as_str() == name && giver.sees(person);
        let person = match self.person(&giver, name) {
            Err(unknown) => self.stored(is_named).await.ok_or(unknown)?,
            known => known?,
        };
        let to = to.map(|to| self.successor(&person, to)).transpose()?;
        // The removal of a person that could not be stored before is tried again.
        let mut people = self.known.read().by_name.clone();
        people.insert(person.name.clone(), person.clone());
        let runs_as_person = |one: &&OwnedAutomation<'_>| {
            one.holder(&people).is_some_and(|(holder, _)| holder.name == person.name)
        };
        let affected = automation.iter().filter(runs_as_person).map(|one| one.name.to_owned());
        let report = RemovalReport {
            person: person_info(&person),
            tasks: Vec::new(),
            automation: affected.collect(),
            to: to.as_ref().map(ToString::to_string),
            removed: !dry_run,
        };
        if dry_run {
            return Ok(report);
        }
        let changed = pass_on(&people, &person.name, to.as_ref(), automation);
        self.known.write().forget(&person.name);
        let passed_on = report.automation.join(", ");
        let by = &caller.principal;
        tracing::info!(%by, person = %person.name, automation = passed_on, to = report.to, "a person was removed");
        if let Some(storage) = &self.storage {
            let stored = storage.remove_person(&person.name, &changed).await;
            stored.map_err(|why| returns(&format!("`{name}` is removed"), &why))?;
        }
        let mut known = self.known.write();
        changed.into_iter().for_each(|person| known.set(person));
        drop(known);
        Ok(report)
    }

    /// Person to whom the automation of `leaving` passes.
    fn successor(&self, leaving: &Person, to: &str) -> Result<PersonName, A2aError> {
        let name = name_of(to).map_err(|why| A2aError::invalid("to", why.message))?;
        let known = self.known.read();
        let why = match known.by_name.get(&name) {
            _ if name == leaving.name => format!("`{name}` is the person who is removed"),
            None => format!("no person is named `{name}`; `a2a-hub person list` lists them"),
            Some(person) if person.tenant != leaving.tenant => format!(
                "{name} belongs to another tenant than {}, whose schedules and triggers work in theirs; name \
                 a person of the same tenant",
                leaving.name
            ),
            Some(_) => return Ok(name),
        };
        Err(A2aError::invalid("to", why))
    }
}
