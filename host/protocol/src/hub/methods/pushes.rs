//! What the methods take that say where a task's notifications are sent.

use super::{DEFAULT_LISTED, MAX_LISTED, named, read, task_id, within};
use crate::{
    model::{error::A2aError, id::PushConfigId, operation::Operation},
    v03::push::{self, OfferedConfig},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetPush {
    /// The task's name.
    task_id: String,
    /// Where its notifications are to be sent.
    push_notification_config: OfferedConfig,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GetPush {
    /// The task's name.
    id: String,
    /// Which of its configs; the first if left out.
    push_notification_config_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListPushes {
    /// The task's name.
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletePush {
    /// The task's name.
    id: String,
    /// Which of its configs.
    push_notification_config_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListDeliveries {
    /// Only what was given up.
    #[serde(default)]
    dead: bool,
    /// How many at most: 20 unless said, 1,000 at most.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetryDeliveries {
    /// The task's name.
    task_id: String,
}

pub(super) fn deliveries(params: Value) -> Result<Operation, A2aError> {
    let ListDeliveries { dead: dead_only, limit } = read(params)?;
    let limit = within("limit", limit.unwrap_or(DEFAULT_LISTED), 1, MAX_LISTED)?;
    Ok(Operation::ListDeliveries { dead_only, limit })
}

pub(super) fn retry(params: Value) -> Result<Operation, A2aError> {
    let RetryDeliveries { task_id: id } = read(params)?;
    Ok(Operation::RetryDeliveries { task: named("taskId", id)? })
}

pub(super) fn set(params: Value) -> Result<Operation, A2aError> {
    let SetPush { task_id: id, push_notification_config } = read(params)?;
    let push = push::read(push_notification_config);
    push.check("pushNotificationConfig")?;
    Ok(Operation::SetPushConfig { task: named("taskId", id)?, push })
}

pub(super) fn get(params: Value) -> Result<Operation, A2aError> {
    let GetPush { id, push_notification_config_id: config } = read(params)?;
    let config = config.map(PushConfigId::new);
    Ok(Operation::GetPushConfig { task: task_id(id)?, id: config })
}

pub(super) fn list(params: Value) -> Result<Operation, A2aError> {
    let ListPushes { id } = read(params)?;
    Ok(Operation::ListPushConfigs { task: task_id(id)? })
}

pub(super) fn delete(params: Value) -> Result<Operation, A2aError> {
    let DeletePush { id, push_notification_config_id: config } = read(params)?;
    Ok(Operation::DeletePushConfig { task: task_id(id)?, id: PushConfigId::new(config) })
}
