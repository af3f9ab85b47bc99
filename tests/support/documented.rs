//! Compares documents of formats with what the program writes. A document's fields are the names in its code spans.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser};
use serde_json::Value;

/// Names in code spans, of paths each part: `cells[].setting` has two.
fn named(text: &str) -> BTreeSet<String> {
    let is_name = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let is_path = |code: &str| code.chars().all(|c| c.is_ascii_alphanumeric() || "_.[]*".contains(c));
    let mut names = BTreeSet::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        if let Event::Code(code) = event
            && is_path(&code)
        {
            names.extend(code.split(['.', '[', ']', '*']).filter(is_name).map(str::to_owned));
        }
    }
    names
}

/// The fields of a value at any depth; those of the objects called `free` have names of other things.
fn fields(value: &Value, free: &[&str], all: &mut BTreeSet<String>) {
    match value {
        Value::Object(own) => {
            for (name, value) in own {
                all.insert(name.clone());
                match value {
                    Value::Object(inner) if free.contains(&name.as_str()) => {
                        inner.values().for_each(|value| fields(value, free, all));
                    }
                    value => fields(value, free, all),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, free, all)),
        _ => {}
    }
}

/// Compares a document, or a part of it, with what was written; `others` are the names in it that are not fields.
#[track_caller]
pub fn compare(document: &str, text: &str, written: &[Value], free: &[&str], others: &str) {
    compare_with(document, [text, ""], written, free, others);
}

/// The same where fields may be described in another document instead.
#[track_caller]
pub fn compare_with(
    document: &str,
    [text, further]: [&str; 2],
    written: &[Value],
    free: &[&str],
    others: &str,
) {
    let mut own = BTreeSet::new();
    written.iter().for_each(|value| fields(value, free, &mut own));
    let named = named(text);
    let others: BTreeSet<String> = others.split_whitespace().map(str::to_owned).collect();
    let join = |all: BTreeSet<&String>| all.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let described = named.union(&self::named(further)).cloned().collect();
    let undocumented = join(own.difference(&described).collect());
    let explained = own.union(&others).cloned().collect();
    let never_written = join(named.difference(&explained).collect());
    let stale = join(others.iter().filter(|name| !named.contains(*name) || own.contains(*name)).collect());
    assert!(
        undocumented.is_empty() && never_written.is_empty() && stale.is_empty(),
        "{document}\nnot documented: {undocumented}\nnever written: {never_written}\nfields or not named: {stale}"
    );
}
