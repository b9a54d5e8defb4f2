//! Resource names of 0.3 over gRPC: paths of tasks and configurations, in place of ids.

use crate::{
    member,
    model::{error::A2aError, method::Method},
};
use serde_json::{Map, Value};

/// Adds the resource name of a task or configuration to the parameters of a gRPC request. Methods
/// without a resource stay unchanged.
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

/// Converts the resource name of a gRPC request to ids: `tasks/{id}` for a task,
/// `tasks/{id}/pushNotificationConfigs/{id}` for a configuration.
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
        // Methods that take one of the two ids ignore the other one.
        params.extend(["taskId", "id"].map(str::to_owned).into_iter().zip(ids.map(Value::from)));
    }
    Ok(())
}
