//! A recorded guest: answers of a hub that is not up are not recorded.

use crate::stage::{ENGINE, Stage, component};
use a2a_hub_core::{grant::Grant, task::replay::Recorded};
use a2a_hub_protocol::operation::{AgentQuery, FoundAgents};
use a2a_hub_runtime::{
    Failure,
    port::{
        delegate::{CallPort, ChildRequest, ChildTask, DelegatePort},
        journal::{JournalAnswer, JournalPort},
    },
};
use a2a_hub_sandbox::Plugin;
use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::timeout;

/// A hub that refuses every call with one failure.
struct Refusing(Failure);

#[async_trait::async_trait]
impl DelegatePort for Refusing {
    async fn agents(&self) -> Vec<Value> {
        Vec::new()
    }

    async fn find(&self, _: AgentQuery) -> Result<FoundAgents, Failure> {
        Err(self.0.clone())
    }

    async fn start(&self, _: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        Err(self.0.clone())
    }

    async fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        Err(self.0.clone())
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<Recorded<JournalAnswer>>>);

#[async_trait::async_trait]
impl JournalPort for Kept {
    async fn record(&self, heard: Recorded<JournalAnswer>) -> Result<(), Failure> {
        self.0.lock().unwrap().push(heard);
        Ok(())
    }
}

/// The guest receives no answer before it is cancelled, and its journal stays unchanged.
#[tokio::test]
async fn refusal_during_shutdown_is_not_recorded() {
    let plugin = Plugin::compile(&ENGINE, &component("durable-guest")).unwrap();
    let mut grant = Grant::everything(plugin.ask());
    grant.delegate.allow("*".to_owned());
    let settled = Failure::Unavailable("it is busy".to_owned());
    let not_up = Failure::HubNotUp("the hub is stopping".to_owned());
    for program in ["call parrot hi", "children"] {
        for (refusal, is_answer) in [(&settled, true), (&not_up, false)] {
            let kept = Arc::new(Kept::default());
            let stage = Stage {
                grant: grant.clone(),
                delegate: Some(Arc::new(Refusing(refusal.clone()))),
                journal: Some(kept.clone()),
                ..Stage::default()
            };
            let mut run = stage.start_recorded(&plugin, program);
            if is_answer {
                timeout(Duration::from_secs(20), run.ended()).await.unwrap();
            } else {
                assert!(timeout(Duration::from_millis(500), run.ended()).await.is_err());
                run.cancel();
                // Output after the cancel does not matter.
                timeout(Duration::from_secs(20), run.ended()).await.unwrap();
            }
            let entries = kept.0.lock().unwrap().len();
            assert_eq!(entries, usize::from(is_answer), "{program} {refusal}");
        }
    }
}
