//! Texts with places to be filled in.

use std::collections::BTreeMap;

/// Replaces every `{{name}}` by its value. Values are not expanded again. A place without a value
/// stays as it is, and no engine accepts it.
pub(super) fn fill(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("{{") {
        filled.push_str(before);
        match from.split_once("}}") {
            Some((name, after)) if values.contains_key(name) => {
                filled.push_str(&values[name]);
                rest = after;
            }
            _ => {
                filled.push_str("{{");
                rest = from;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_looked_at_again() {
        let values = BTreeMap::from([("a", "{{b}}".to_owned()), ("b", "x".to_owned())]);
        assert_eq!(fill("{{a}}-{{b}}{{c}} {{", &values), "{{b}}-x{{c}} {{");
    }
}
