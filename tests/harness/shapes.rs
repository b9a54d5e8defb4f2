//! JSON of unexpected shapes. The tests of several crates include this file, since they share no
//! test crate.

use serde_json::{Value, json};

/// One value of each shape that JSON has.
pub(crate) fn shapes() -> [Value; 8] {
    [json!(null), json!(true), json!(1), json!(1.5), json!("x"), json!([]), json!([1]), json!({})]
}

/// Variants of `value` in which it, or one member or item at any depth, is replaced by each shape.
pub(crate) fn reshaped(value: &Value) -> Vec<Value> {
    let mut pointers = vec![String::new()];
    find(value, "", &mut pointers);
    let each = pointers.iter().flat_map(|pointer| shapes().map(|shape| (pointer, shape)));
    each.map(|(pointer, shape)| {
        let mut other = value.clone();
        if let Some(place) = other.pointer_mut(pointer) {
            *place = shape;
        }
        other
    })
    .collect()
}

/// JSON pointers (RFC 6901) to everything within `value`, which is at `at`.
fn find(value: &Value, at: &str, pointers: &mut Vec<String>) {
    let members = value.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value));
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(n, value)| (n.to_string(), value));
    for (step, value) in members.chain(items) {
        let pointer = format!("{at}/{step}");
        find(value, &pointer, pointers);
        pointers.push(pointer);
    }
}
