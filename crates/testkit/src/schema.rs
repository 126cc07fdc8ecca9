//! Conformity with a JSON schema: a checker for just the keywords that ours use. It refuses any other.

use serde_json::Value;

/// Returns true if the value conforms to the schema.
pub fn conforms(schema: &Value, value: &Value) -> bool {
    valid(schema, schema, value)
}

/// True if `value` conforms to `schema`, a part of `root`.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let object = schema.as_object().expect("a schema is an object");
    object.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "$defs" => true,
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            valid(root, &root["$defs"][name], value)
        }
        "oneOf" => {
            let fits = rule
                .as_array()
                .unwrap()
                .iter()
                .filter(|one| valid(root, one, value));
            fits.count() == 1
        }
        "const" => rule == value,
        "enum" => rule.as_array().unwrap().contains(value),
        "type" => match rule {
            Value::Array(any) => any.iter().any(|one| is_of_type(one, value)),
            one => is_of_type(one, value),
        },
        "minimum" => value.as_i64().is_none_or(|v| v >= rule.as_i64().unwrap()),
        "required" => value.as_object().is_none_or(|fields| {
            let keys = rule.as_array().unwrap().iter();
            keys.map(|key| key.as_str().unwrap())
                .all(|key| fields.contains_key(key))
        }),
        "properties" => value.as_object().is_none_or(|fields| {
            fields
                .iter()
                .all(|(key, field)| rule.get(key).is_none_or(|rule| valid(root, rule, field)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|fields| {
            let known = schema.get("properties");
            fields
                .iter()
                .filter(|(key, _)| known.is_none_or(|k| k.get(key).is_none()))
                .all(|(_, field)| match rule {
                    Value::Bool(allowed) => *allowed,
                    rule => valid(root, rule, field),
                })
        }),
        "items" => value
            .as_array()
            .unwrap()
            .iter()
            .all(|item| valid(root, rule, item)),
        "pattern" => matches(rule.as_str().unwrap(), value.as_str().unwrap_or_default()),
        other => panic!("keyword {other}"),
    })
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        other => panic!("type {other}"),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let is_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match pattern {
        "^([0-9a-f]{2})+$" => is_hex && !text.is_empty() && text.len().is_multiple_of(2),
        "^[0-9a-f]{32}$" => is_hex && text.len() == 32,
        "^[A-Za-z0-9+/]*={0,2}$" => {
            let letters = text.trim_end_matches('=');
            let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
            text.len() - letters.len() <= 2 && letters.bytes().all(is_letter)
        }
        other => panic!("pattern {other}"),
    }
}
