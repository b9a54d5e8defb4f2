//! Access to members of JSON values of any shape. In contrast, `value["key"] = …` and
//! `value["key"].take()` of `serde_json` panic if the value is not an object, which external JSON
//! may cause.

use serde_json::{Map, Value};

/// Returns the member `name` for modification, inserting null if it is absent. A null value becomes
/// an object; for any other non-object, returns `None`.
pub fn entry<'a>(of: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    if of.is_null() {
        *of = Value::Object(Map::new());
    }
    let members = of.as_object_mut()?;
    Some(members.entry(name).or_insert(Value::Null))
}

/// Sets the member `name` of an object; leaves values of other shapes unchanged.
pub fn set(of: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(member) = entry(of, name) {
        *member = value.into();
    }
}

/// Takes the member `name` of an object and leaves null in its place; returns null if the member is
/// absent or the value is no object.
pub fn take(of: &mut Value, name: &str) -> Value {
    of.get_mut(name).map(Value::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn object_members_are_set_and_taken() {
        let mut object = json!({ "a": 1 });
        set(&mut object, "a", 2);
        set(&mut object, "b", "x");
        assert_eq!(take(&mut object, "a"), 2);
        assert_eq!(object, json!({ "a": null, "b": "x" }));
        let mut null = Value::Null;
        set(&mut null, "a", 1);
        assert_eq!(null, json!({ "a": 1 }));
    }

    #[test]
    fn non_object_values_stay_unchanged() {
        for shape in [json!(true), json!(1), json!(1.5), json!("x"), json!([]), json!([1])] {
            let mut value = shape.clone();
            set(&mut value, "a", 1);
            assert_eq!(entry(&mut value, "a"), None);
            assert_eq!((take(&mut value, "a"), value), (Value::Null, shape));
        }
    }
}
