//! The doctor's report of the machine that the tests run on, shown with `--nocapture`.

use dunnage::host::checks::{self, Fix, State, View};
use dunnage::units::Nanos;

#[test]
fn every_finding_on_this_machine_is_one_line_and_says_how_to_mend() {
    let view = View::gather(&std::env::temp_dir(), Nanos::from_millis(1000));
    println!("{view:#?}");
    for (_, check, finding) in checks::run(&view) {
        println!("{:8} {:20} {}", finding.state.to_string(), check.name, finding.what);
        if let Some(fix) = &finding.fix {
            let (Fix::Command(fix) | Fix::Advice(fix)) = fix;
            println!("{:29} fix: {fix}", "");
        }
        assert!(!finding.what.is_empty() && !finding.what.contains('\n'), "{}: {finding:?}", check.name);
        assert!(finding.fix.is_some() || finding.state <= State::Note, "{}: {finding:?}", check.name);
        assert!(finding.fix.is_none() || finding.state >= State::Note, "{}: {finding:?}", check.name);
    }
}
