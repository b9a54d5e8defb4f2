//! State of the hub. A hub is cloned for each request and each connection, so its state is behind
//! one pointer.

use super::LiveConfig;
use crate::conversations::{contexts::Contexts, repeats::Repeats};
use crate::observability::hub_events::Events;
use crate::{
    devices::Devices,
    notify::Notifiers,
    people::People,
    push::Pushes,
    routing::Routes,
    signer::HubSigner,
    tasks::{ReviewLocks, Tasks},
};
use a2a_hub_agents::{Agents, PluginFolder};
use a2a_hub_automation::{Schedules, Topics, Triggers};
use a2a_hub_protocol::id::{AgentId, TenantId};
use a2a_hub_store::Copies;
use a2a_hub_tls::ServerTls;
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicBool},
};
use tokio::time::Instant;

/// Fields of a hub, for the modules below `hub`.
pub struct HubParts {
    pub(super) agents: Agents,
    pub(super) plugins: PluginFolder,
    pub(super) contexts: Contexts,
    pub(super) tasks: Tasks,
    pub(super) pushes: Pushes,
    pub(super) signer: Option<Arc<HubSigner>>,
    pub(super) events: Events,
    pub(super) devices: Arc<Devices>,
    pub(super) people: Arc<People>,
    pub(super) tls: Option<ServerTls>,
    pub(super) default_agent: Arc<Mutex<Option<AgentId>>>,
    pub(super) live: Option<Arc<LiveConfig>>,
    pub(super) warnings: Arc<[String]>,
    pub(super) copies: Option<Arc<dyn Copies>>,
    pub(super) losses: Arc<[String]>,
    pub(super) repeats: Repeats,
    pub(super) tenants: Arc<BTreeSet<TenantId>>,
    pub(super) routes: Routes,
    pub(super) schedules: Option<Arc<Schedules>>,
    pub(super) triggers: Option<Arc<Triggers>>,
    pub(super) topics: Option<Arc<Topics>>,
    pub(super) notifiers: Option<Arc<Notifiers>>,
    pub(super) started: Instant,
    pub(super) since: String,
    pub(super) closed: Arc<AtomicBool>,
    pub(super) review_locks: ReviewLocks,
}
