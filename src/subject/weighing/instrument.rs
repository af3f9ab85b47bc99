//! What an engine's own tool says that a container uses, and what the container's cgroup said at that moment.

use std::path::Path;

use serde_json::Value;

use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::subject::component::numbers;
use crate::subject::instruments::{Formula, known};
use crate::subject::weight::Instrument;
use crate::subject::{Container, Subject};
use crate::sys::cgroup::Version;
use crate::sys::memory::charged::Charging;

/// Where engines and runtimes have the memory of a container, and the formula where it is always the same.
const USED: [(&str, Option<Formula>); 6] = [
    ("/MemUsage", None),
    ("/0/mem_usage", None),
    ("/memory_stats/usage", Some(Formula::Charged)),
    ("/data/memory/usage/usage", None),
    ("/memory/usage/usage", None),
    ("/memory/usage", None),
];

/// Asks the tool about a running container with this cgroup; none where its subject has no such tool.
///
/// # Errors
/// If the tool fails, or says something that cannot be read.
pub(super) fn asked(
    container: &mut Container<'_>,
    (charging, cgroup): (&Charging, &Path),
    subject: &dyn Subject,
) -> Result<Option<Instrument>, Abort> {
    let (weight, figures) =
        charging.figures(cgroup).or_environment(format_args!("cannot read `{}`", cgroup.display()))?;
    let said = match container.stats() {
        Err(Abort::Failed(Failure { class: FailureClass::Unsupported, .. })) => return Ok(None),
        said => said?.text,
    };
    let words: Value = serde_json::from_str(&said).unwrap_or_default();
    let found = USED.iter().find_map(|(place, formula)| Some((bytes(words.pointer(place)?)?, *formula)));
    let Some((said, always)) = found else {
        let reason = "the engine's tool does not say what the container uses";
        return Err(Failure::new(FailureClass::WrongOutput, reason).with_words(said.as_bytes()).into());
    };
    let about = subject.about();
    let version = about.facts.components.first().and_then(|client| numbers(&client.version));
    let of_version =
        || version.and_then(|own| known(&about.spec.name, own, *charging.version() == Version::V2));
    Ok(Some(Instrument { said, weight, figures, formula: always.or_else(of_version) }))
}

/// Bytes, as a number or in the form of docker and podman: `664KiB / 23.54GiB`, `45.06kB / 24GB`.
fn bytes(figure: &Value) -> Option<i64> {
    let Some(text) = figure.as_str() else { return figure.as_i64() };
    let used = text.split(" / ").next()?.trim();
    let digits = used.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = used.split_at(digits);
    let factor = match unit.trim() {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * factor).round() as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_of_engines_are_read() {
        let read = |figure| bytes(&figure);
        assert_eq!(read(json!("664KiB / 23.54GiB")), Some(679_936));
        assert_eq!(read(json!("45.06kB / 24.11GB")), Some(45_060));
        assert_eq!((read(json!(4096)), read(json!("--"))), (Some(4096), None));
    }
}
