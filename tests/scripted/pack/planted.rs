//! Nothing private survives a pack, anywhere in a run. Each text of a run in turn gets the name of a host, of
//! a user, a path and the value of a variable. Then the pack contains none of them, or it is refused.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::inside;
use crate::dunnage::{Dunnage, finished};

const HOST: &str = "kestrel-seven";
const PERSON: &str = "mathilda";
const PATH: &str = "/srv/vault/ledger";
const VARIABLE: &str = "sesame-open-wide";

/// A run with every kind of line: samples, failures with words of an engine, facts, predictions, tags.
pub fn run() -> Dunnage {
    let dunnage = Dunnage::new().with("SUDO_USER", PERSON).with("DEPLOY_TOKEN", VARIABLE);
    let mut command = dunnage.command(
        "run start -s a=fake -s b=fake:time=22ms -s c=fake:fail=3 --rounds 3 --seed 7 --tag commit=1a2b3c -o DIR",
    );
    let ran = finished(command.args(["--predict", "start.returned: a < b"]).output().expect("it starts"));
    assert!(ran.code == 6, "{ran}");
    for file in ["env.json", "samples.jsonl"] {
        change(&dunnage, file, |text| {
            let from = text.find("\"host\"").expect("it names its host") + 6;
            let at = from + text[from..].find('"').expect("a value") + 1;
            let end = at + text[at..].find('"').expect("its end");
            format!("{}{HOST}{}", &text[..at], &text[end..])
        });
    }
    dunnage
}

fn change(dunnage: &Dunnage, file: &str, change: impl Fn(&str) -> String) {
    let path = dunnage.directory().join(file);
    let text = fs::read_to_string(&path).expect("a file of the run");
    fs::write(path, change(&text)).expect("it is ours");
}

/// The end of the pointer to a name, and not to what has this name.
const NAME: &str = " (name)";

/// The places of texts and names, as pointers: of those that differ only by an index, the first.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    match value {
        Value::String(_) => into.push(at.to_owned()),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(index, one)| places(one, &format!("{at}/{index}"), into));
        }
        Value::Object(all) => all.iter().for_each(|(name, one)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            into.push(format!("{at}/{name}{NAME}"));
            places(one, &format!("{at}/{name}"), into);
        }),
        _ => {}
    }
}

/// The name of a place without indices.
fn kind(place: &str) -> String {
    let part = |part: &str| {
        if part.bytes().all(|byte| byte.is_ascii_digit()) { "*".into() } else { part.to_owned() }
    };
    place.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// One place of a text in a line of a file, or in the whole of a file without lines.
struct Place {
    file: &'static str,
    line: usize,
    pointer: String,
}

fn all_places(dunnage: &Dunnage) -> Vec<Place> {
    let mut all = Vec::new();
    for file in ["env.json", "plan.json", "samples.jsonl"] {
        let text = fs::read_to_string(dunnage.directory().join(file)).expect("a file");
        let parts: Vec<&str> = if file == "samples.jsonl" { text.lines().collect() } else { vec![&text] };
        let mut known = BTreeSet::new();
        for (line, part) in parts.into_iter().enumerate() {
            let value: Value = serde_json::from_str(part).expect("JSON");
            let first = value.as_object().and_then(|all| all.keys().next().cloned());
            let mut found = Vec::new();
            places(&value, "", &mut found);
            found.retain(|place| known.insert((first.clone(), kind(place))));
            all.extend(found.into_iter().map(|pointer| Place { file, line, pointer }));
        }
    }
    all
}

/// Appends words to the text in a place; the rest of the file does not change.
fn plant(text: &str, place: &Place, planted: &str) -> String {
    let put = |part: &str| {
        let mut value: Value = serde_json::from_str(part).expect("JSON");
        if let Some(pointer) = place.pointer.strip_suffix(NAME) {
            let (above, name) = pointer.rsplit_once('/').expect("a name in an object");
            let all = value.pointer_mut(above).and_then(Value::as_object_mut).expect("an object");
            let name = name.replace("~1", "/").replace("~0", "~");
            let named = all.remove(&name).expect("it has the name");
            all.insert(format!("{name} {planted}"), named);
            return value;
        }
        let text = value.pointer_mut(&place.pointer).expect("a text");
        *text = Value::from(format!("{} {planted}", text.as_str().unwrap_or_default()));
        value
    };
    match place.file {
        "samples.jsonl" => {
            let line = |(index, line): (usize, &str)| match index == place.line {
                // The first name in a line identifies its kind.
                true => in_the_order_of(line, &put(line)),
                false => line.to_owned(),
            };
            text.lines().enumerate().map(line).map(|line| line + "\n").collect()
        }
        _ => put(text).to_string(),
    }
}

/// An object with its names in the order of another text of it.
fn in_the_order_of(line: &str, value: &Value) -> String {
    let Value::Object(all) = value else { return value.to_string() };
    let mut names: Vec<&String> = all.keys().collect();
    names.sort_by_key(|name| line.find(&format!("\"{name}\":")));
    let one = |name: &&String| format!("{}:{}", Value::from(name.as_str()), all[*name]);
    format!("{{{}}}", names.iter().map(one).collect::<Vec<_>>().join(","))
}

#[test]
fn nothing_private_survives_a_pack_wherever_it_stands() {
    let dunnage = run();
    let pack = dunnage.directory().with_extension("dunnage");
    let places = all_places(&dunnage);
    assert!(places.len() > 60, "{}", places.len());
    let everything = format!("{HOST} {PERSON} {PATH} {VARIABLE}");
    let mut packed = BTreeSet::new();
    for place in &places {
        let file = dunnage.directory().join(place.file);
        let before = fs::read_to_string(&file).expect("a file");
        // A path is private by its form alone; the search for the other words could hide that. Facts about
        // the machine and kept tags are not secrets of the environment: CI has its commit there; and many
        // hosts and their first users are named after their distribution.
        let is_said = ["/machine/", "/tags/"].iter().any(|front| place.pointer.starts_with(front));
        let all = match place.pointer.as_str() {
            "/machine/distribution" => PATH.to_owned(),
            _ if is_said => format!("{HOST} {PERSON} {PATH}"),
            _ => everything.clone(),
        };
        let is_name = place.pointer.ends_with(NAME);
        for planted in [PATH, &all].into_iter().skip(usize::from(is_name)) {
            fs::write(&file, plant(&before, place, planted)).expect("it is ours");
            let _ = fs::remove_file(&pack);
            let ran = dunnage.run("pack DIR -o DIR.dunnage");
            let name = format!("{} {}: {planted}", place.file, place.pointer);
            if ran.code != 0 {
                assert!(!pack.exists() && ran.stderr.starts_with("error: "), "{name}: {ran}");
                continue;
            }
            packed.insert(format!("{} {}", place.file, kind(&place.pointer)));
            let text = inside(&pack);
            for private in [HOST, PERSON, PATH, "vault", "ledger", VARIABLE] {
                assert!(!text.contains(private), "{name}: {private} is in the pack");
            }
        }
        fs::write(&file, before).expect("it is ours");
    }
    // Most places can have arbitrary text; a pack of them is made, not refused.
    assert!(packed.len() > 40, "{} of {} were packed: {packed:?}", packed.len(), places.len());
}

#[test]
fn a_prediction_is_packed_with_its_subjects() {
    let dunnage = Dunnage::new().with("SUDO_USER", PERSON);
    let mut command = dunnage.command("run start -s b=fake:time=22ms --rounds 12 --seed 7 -o DIR");
    command.args(["-s", "mathilda=fake", "--predict", "start.returned: mathilda < b"]);
    assert!(command.output().expect("it starts").status.success());
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!inside(&dunnage.directory().with_extension("dunnage")).contains(PERSON));
    let report = dunnage.run("report DIR.dunnage --format json");
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let own: Value = serde_json::from_str(&dunnage.run("report DIR --format json").stdout).expect("JSON");
    let text = report["predictions"].to_string();
    assert!(text.contains("subject1 < b"), "{text}");
    let outcomes = |report: &Value| -> Vec<String> {
        let links = report["predictions"][0]["links"].as_array().expect("links");
        links.iter().map(|link| link["verdict"].to_string()).collect()
    };
    assert_eq!(outcomes(&report), outcomes(&own));
    assert!(outcomes(&own).iter().all(|one| one != "null"), "{own}");
}
