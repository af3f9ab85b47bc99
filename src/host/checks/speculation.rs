//! Does the kernel change how it runs a task because the task has a seccomp filter?
//!
//! Kernels before 5.16, and later ones that are told so, switch speculative features off for every
//! task with a filter. Part of what a filter seems to cost is then not the filter's.

use super::{Finding, View};

/// What `/sys/devices/system/cpu/vulnerabilities` says of one weakness.
fn weakness<'a>(view: &'a View, name: &str) -> Option<&'a str> {
    let all = &view.facts.kernel.mitigations;
    all.iter().find(|(known, _)| known == name).map(|(_, state)| state.as_str())
}

/// Whether this process pays already, in the words of `/proc/PID/status`.
fn pays(own: Option<&str>) -> bool {
    own.is_some_and(|own| own.contains("mitigated") || own.contains("disabled"))
}

fn baseline_pays(what: &str, own: &str) -> Finding {
    Finding::warning(format!("dunnage itself runs with {what} (\"{own}\"): `bare` and all else pay for it"))
        .advice("start dunnage from a session without a seccomp filter or `prctl` that asks for it")
}

/// Store bypass, mitigated by SSBD.
pub(super) fn store_bypass(view: &View) -> Finding {
    let own = view.settings.own_store_bypass.as_deref();
    if let Some(own) = own.filter(|own| pays(Some(own)) && !own.starts_with("globally")) {
        return baseline_pays("SSBD", own);
    }
    match weakness(view, "spec_store_bypass") {
        None => Finding::not_applicable("the kernel does not tell"),
        Some(state) if state.contains("seccomp") => Finding::note(
            "tasks with a seccomp filter run with SSBD: part of what the filter seems to cost",
        )
        .advice(
            "to tell them apart, boot with `spec_store_bypass_disable=prctl`, the default since Linux 5.16",
        ),
        Some(state) => Finding::ok(format!("no change by a filter ({state})")),
    }
}

/// Indirect branches between threads of a core, mitigated by STIBP.
pub(super) fn indirect_branches(view: &View) -> Finding {
    let own = view.settings.own_indirect_branches.as_deref();
    let by_choice = |own: &&str| own.starts_with("conditional") && pays(Some(own));
    if let Some(own) = own.filter(by_choice) {
        return baseline_pays("STIBP", own);
    }
    let Some(state) = weakness(view, "spectre_v2") else {
        return Finding::not_applicable("the kernel does not tell");
    };
    let told = view.facts.kernel.was_told("spectre_v2_user=seccomp");
    let by_default = view.facts.kernel.is_before(5, 16) == Some(true)
        && !["prctl", "on", "off"]
            .iter()
            .any(|way| view.facts.kernel.was_told(&format!("spectre_v2_user={way}")));
    if state.contains("STIBP: conditional") && (told || by_default) {
        return Finding::note(
            "tasks with a seccomp filter run with STIBP: part of what the filter seems to cost",
        )
        .advice("to tell them apart, boot with `spectre_v2_user=prctl`, the default since Linux 5.16");
    }
    let stibp = state.split([';', ',']).map(str::trim).find(|part| part.starts_with("STIBP"));
    Finding::ok(format!("no change by a filter ({})", stibp.unwrap_or("no STIBP")))
}

#[cfg(test)]
mod tests {
    use super::super::State::*;
    use super::super::view::planted;
    use super::*;

    fn with(release: &str, weakness: &str, state: &str) -> View {
        let mut view = planted();
        view.facts.kernel.release = Some(release.to_owned());
        view.facts.kernel.mitigations = vec![(weakness.to_owned(), state.to_owned())];
        view
    }

    #[test]
    fn ssbd_by_seccomp_is_noted() {
        let found = |state: &str| {
            store_bypass(&with(
                "5.10.0-28-amd64",
                "spec_store_bypass",
                &format!("Mitigation: Speculative Store Bypass disabled via {state}"),
            ))
        };
        assert_eq!((found("prctl and seccomp").state, found("prctl").state), (Note, Ok));
        assert_eq!(store_bypass(&planted()).state, Ok);
    }

    #[test]
    fn stibp_by_seccomp_is_noted_where_it_is_the_default_or_asked_for() {
        const CONDITIONAL: &str = "Mitigation: Retpolines; STIBP: conditional; RSB filling";
        let found = |release: &str, state: &str, words: &str| {
            let mut view = with(release, "spectre_v2", state);
            view.facts.kernel.command_line = Some(words.to_owned());
            indirect_branches(&view).state
        };
        assert_eq!(found("5.15.0-100-generic", CONDITIONAL, ""), Note);
        assert_eq!(found("5.15.0-100-generic", CONDITIONAL, "spectre_v2_user=prctl"), Ok);
        assert_eq!(found("5.16.0", CONDITIONAL, ""), Ok);
        assert_eq!(found("6.1.0", CONDITIONAL, "spectre_v2_user=seccomp"), Note);
        assert_eq!(found("5.15.0", "Mitigation: Retpolines; STIBP: disabled; RSB filling", ""), Ok);
    }

    #[test]
    fn a_baseline_that_pays_already_is_told() {
        let own = |words: &str| {
            let mut view = planted();
            view.settings.own_store_bypass = Some(words.to_owned());
            store_bypass(&view).state
        };
        assert_eq!((own("thread force mitigated"), own("thread mitigated")), (Warning, Warning));
        assert_eq!(
            (own("thread vulnerable"), own("globally mitigated"), own("not vulnerable")),
            (Ok, Ok, Ok)
        );
        let own = |words: &str| {
            let mut view = planted();
            view.settings.own_indirect_branches = Some(words.to_owned());
            indirect_branches(&view).state
        };
        assert_eq!((own("conditional force disabled"), own("conditional disabled")), (Warning, Warning));
        assert_eq!((own("conditional enabled"), own("always enabled")), (Ok, Ok));
    }
}
