//! Requests of a guest's program for permission: read from the program's own words, and answered by
//! the operator's rules or by the client.

use super::tasks::{MAX_MESSAGE, QuestionForm, values_of_json};
use crate::store::{
    bindings::a2a::hub::{tasks, types},
    redaction::Hide as _,
    state::GuestState,
    usage::json_bytes,
};
use a2a_hub_core::permission::request;
use a2a_hub_protocol::permission::{Action, PermissionRequest};
use a2a_hub_runtime::{Failure, port::tasks::RuleReply};
use serde_json::Value;

/// Cost of the status that reports an answer of a rule, in bytes, beside the request.
const REPORT: u64 = 1_024;

impl GuestState {
    /// Has a request decided: by the rules, or else by the client.
    pub(super) async fn decide_permission(
        &mut self,
        facts: &str,
        prompt: types::Message,
        timeout_ms: Option<u64>,
    ) -> Result<tasks::Permission, Failure> {
        self.require_outside_step("request a permission")?;
        let request = self.read_request(facts).await?;
        Ok(match self.apply_rules(&request, false).await? {
            Some(RuleReply::Allowed(rule)) => tasks::Permission::Allowed(rule),
            Some(RuleReply::Denied(reason)) => tasks::Permission::Denied(reason),
            None => {
                let form = QuestionForm::Request(request);
                let need = tasks::Need::Input;
                tasks::Permission::Pending(
                    self.pose_question(need, prompt, timeout_ms, form).await?,
                )
            }
        })
    }

    /// Reads the request from the facts of a guest.
    pub(super) async fn read_request(&mut self, facts: &str) -> Result<PermissionRequest, Failure> {
        if facts.len() > MAX_MESSAGE {
            let reason = format!("its request is longer than {MAX_MESSAGE} bytes");
            let action = Action::Other { reason, runs: false };
            let vendor = String::new();
            return Ok(PermissionRequest { vendor, outside_sandbox: false, action });
        }
        self.account.before(facts.len()).await;
        let invalid = |why| Failure::Invalid(format!("request a permission: the facts are {why}"));
        let mut facts: Value =
            serde_json::from_str(facts).map_err(|why| invalid(format!("no JSON: {why}")))?;
        if !facts.is_object() {
            return Err(invalid("no JSON object".to_owned()));
        }
        self.output.charge(0, values_of_json(&facts))?;
        facts.hide(&self.redaction.secrets);
        Ok(request::read(&facts))
    }

    /// Applies the operator's rules. A run that is replayed later always asks its client, so that
    /// each replay has the same answers.
    pub(super) async fn apply_rules(
        &mut self,
        request: &PermissionRequest,
        only_denials: bool,
    ) -> Result<Option<RuleReply>, Failure> {
        let Some(port) = self.ports.tasks.clone().filter(|_| self.replay.is_none()) else {
            return Ok(None);
        };
        // What is reported as allowed is not refused afterwards.
        let report = REPORT + json_bytes(request) + port.extra_status_bytes();
        self.output.charge(1, report)?;
        self.until_its_pace(1, report).await?;
        let cancel = self.cancel.clone();
        tokio::select! {
            reply = port.apply_rules(request, only_denials) => reply,
            () = cancel.cancelled() => Err(Failure::Cancelled),
        }
    }
}
