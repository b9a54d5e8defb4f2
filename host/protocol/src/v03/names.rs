//! How 0.3 names things on gRPC: a task or a config by its path, where all else has ids.

use crate::{
    member,
    model::{error::A2aError, method::Method},
};
use serde_json::{Map, Value};

/// Names what is asked about as 0.3 does on gRPC: a task or a config by its path, and of both only what has no path of
/// its own.
pub(crate) fn write(method: Method, params: &mut Value) {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let of_task = |task: &str| format!("tasks/{task}");
    let (field, path) = match (method, text("taskId"), text("id")) {
        (Method::GetTask | Method::CancelTask | Method::SubscribeToTask, _, Some(task)) => {
            ("name", of_task(task))
        }
        (Method::ListTaskPushNotificationConfigs, Some(task), _) => ("parent", of_task(task)),
        (_, Some(task), Some(config)) => {
            ("name", format!("tasks/{task}/pushNotificationConfigs/{config}"))
        }
        _ => return,
    };
    member::set(params, field, path);
}

/// Reads how 0.3 names on gRPC what is asked about: a task as `tasks/{id}`, a config as
/// `tasks/{id}/pushNotificationConfigs/{id}`.
pub(crate) fn read(params: &mut Map<String, Value>) -> Result<(), A2aError> {
    for field in ["name", "parent"] {
        let Some(Value::String(name)) = params.remove(field) else { continue };
        let ids = match name.split('/').collect::<Vec<_>>()[..] {
            ["tasks", task] | ["tasks", task, "pushNotificationConfigs"] => [task, task],
            ["tasks", task, "pushNotificationConfigs", config] => [task, config],
            _ => {
                let why = "must be `tasks/{id}` or `tasks/{id}/pushNotificationConfigs/{id}`";
                return Err(A2aError::invalid(field, why));
            }
        };
        // Where only one of them is asked for, the other is not looked at.
        params.extend(["taskId", "id"].map(str::to_owned).into_iter().zip(ids.map(Value::from)));
    }
    Ok(())
}
