//! Every kind of value in a sample is reported: a rate of which more is better, a distribution, a file.

use std::fs;

use dunnage::experiment::scripted::names::LATENCY;
use dunnage::launch::names::{RETURNED, SPAWN};
use dunnage::outcome::Outcome;
use dunnage::record;
use dunnage::verdict::{self, Kind};

use crate::dunnage::Dunnage;

const RUN: &str = "run scripted -s quick=fake:time=1ms,noise=2 -s slow=fake:time=2ms,noise=2 --rounds 14 --seed 7 -o DIR --full";

#[test]
fn words_follow_the_direction_of_each_metric() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let analysis = verdict::analyse(&run);
    let found = |metric: &str| {
        let is_it = |one: &&verdict::Finding| {
            one.about.metric == metric && one.about.subject == "slow" && one.about.against == "quick"
        };
        analysis.findings.iter().find(is_it).expect("a finding")
    };
    // Half as many bytes in a second are slower, as is twice the latency.
    let throughput = found("throughput");
    assert!(throughput.difference.unwrap().value < -4e8, "{throughput:?}");
    assert_eq!((throughput.kind(), found("latency").kind()), (Kind::Slower, Kind::Slower));
    assert_eq!(found("requests").kind(), Kind::Same);
    assert_eq!(
        (&*throughput.about.run, &*throughput.about.host),
        (run.run.as_str(), run.environment.host.as_str())
    );
    let shown = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["quick has most, by ", "] less slower"] {
        assert!(shown.contains(words), "{words}: {}", ran.stdout);
    }
    for words in ["but has ", "they are the same", "they cannot be told apart"] {
        assert!(!shown.contains(words), "{words}: {}", ran.stdout);
    }
    let file: serde_json::Value =
        serde_json::from_str(&dunnage.run("report DIR --format json").stdout).unwrap();
    let metric = &file["experiments"][0]["metrics"][0];
    assert_eq!((&metric["unit"], &metric["better"]), (&"bytes/s".into(), &"more".into()));
    // Lists for users do not include items that exist for tests.
    assert!(!dunnage.run("list experiments").stdout.contains("scripted"));
    let lists: serde_json::Value =
        serde_json::from_str(&dunnage.run("list --format json").stdout).expect("JSON");
    assert_eq!(
        (&lists["schema"], &lists["experiments"][0]["name"]),
        (&"dunnage-list/1".into(), &"start".into())
    );
    assert_eq!((&lists["metrics"][0]["unit"], &lists["subjects"][0]["name"]), (&"s".into(), &"bare".into()));
}

/// A metric that only a setting has is named where that setting was measured, and nowhere else.
#[test]
fn what_was_not_measured_has_no_table_and_no_explanation() {
    let dunnage = Dunnage::new();
    let run = "run start -s one=fake:time=1ms -s two=fake:time=2ms --rounds 3 --seed 7 --no-html";
    assert_eq!(dunnage.run(&format!("{run} -o DIR")).code, 0);
    assert_eq!(dunnage.run(&format!("{run} --set libc=no --set libc=yes -o DIR-libc")).code, 0);
    let documents = ["--full", "--format md", "--format html", "--format csv"];
    let names = |command: &str| {
        let shown = dunnage.run(command);
        assert!(shown.code == 0 && shown.stdout.contains("probe_work"), "{shown}");
        shown.stdout.contains("libc_start")
    };
    for document in documents {
        assert!(!names(&format!("report DIR {document}")), "{document}");
        assert!(names(&format!("report DIR-libc {document}")), "{document}");
    }
    assert!(!names("compare DIR DIR --format md") && names("compare DIR-libc DIR-libc --format md"));
}

#[test]
fn distributions_and_files_travel_with_their_samples() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    for verb in ["pack DIR -o DIR.dunnage", "unpack DIR.dunnage -o DIR.again"] {
        let ran = dunnage.run(verb);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let again = dunnage.directory().with_extension("again");
    let mut samples = 0;
    let visit = &mut |row: &record::Row<'_>| {
        let Outcome::Measured(sample) = row.outcome.as_ref() else { panic!("{row:?}") };
        let took = sample.seconds(SPAWN, RETURNED).unwrap() * 1e9;
        let latency = sample.distribution(LATENCY).expect("a distribution");
        assert_eq!(latency.count(), 1000);
        for share in [0.5, 0.99] {
            let quantile = latency.quantile(share).unwrap() as f64;
            assert!((quantile / (took * share) - 1.0).abs() < 3e-3, "{share}: {quantile} of {took}");
        }
        let [(name, dunnage::outcome::Artefact::File(path))] = &sample.artefacts[..] else {
            panic!("{sample:?}")
        };
        assert_eq!((name.as_ref(), path), ("trace", &format!("artefacts/{}-{}-trace", row.round, row.cell)));
        let [own, unpacked] = [&dunnage.directory(), &again].map(|run| fs::read_to_string(run.join(path)));
        assert_eq!(own.unwrap(), unpacked.as_deref().unwrap_or_default());
        assert_eq!(unpacked.unwrap(), format!("spawn 0\nreturned {}\n", took.round()));
        samples += 1;
        Ok(())
    };
    record::rows(&again, visit).unwrap();
    // Two subjects and their twins of the baseline's layer, with a round to warm up.
    let run = record::load(&again).unwrap();
    assert_eq!(samples, run.plan.cells.len() * 15);
    // A private word in a file prevents the pack, and its place is reported.
    let trace = fs::read_dir(dunnage.directory().join("artefacts")).unwrap().next().unwrap().unwrap().path();
    fs::write(&trace, "opened a file of tulips\n").unwrap();
    let ran = dunnage.run("pack DIR -o DIR.refused --private tulips");
    assert!(ran.code != 0 && ran.stderr.contains("artefacts/"), "{ran}");
    assert!(!dunnage.directory().with_extension("refused").exists());
}

#[test]
fn a_line_that_names_a_file_elsewhere_or_a_broken_distribution_is_damaged() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let path = dunnage.directory().join("samples.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let spoilt = text.replacen("\"artefacts/3-0-trace\"", "\"artefacts/../../etc/passwd\"", 1);
    let spoilt = spoilt.replacen("\"latency\":\"", "\"latency\":\"AAAA", 1);
    assert_ne!(spoilt, text);
    fs::write(&path, spoilt).unwrap();
    assert_eq!(record::load(&dunnage.directory()).unwrap().damaged, 2);
}

/// Entries that take a fifth of 10 ms; half of that is CPU time of the client and a fifth that of the engine,
/// as scripted; a hundred containers, each checked every ten seconds, are ten checks a second.
#[test]
fn health_checks_cost_what_entries_cost_times_their_rate() {
    let dunnage = Dunnage::new();
    let ran = dunnage
        .run("run exec -s a=fake:time=10ms,noise=1 -s b=fake:time=30ms,noise=1 --rounds 14 --seed 7 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let advised = dunnage.run("advise probes DIR --format json");
    assert_eq!(advised.code, 0, "{advised}");
    let said: serde_json::Value = serde_json::from_str(&advised.stdout).expect("JSON");
    assert_eq!((&said["rate"], &said["subjects"][0]["setting"]), (&10.0.into(), &"prestate=idle".into()));
    for (index, time) in [0.010, 0.030].into_iter().enumerate() {
        let subject = &said["subjects"][index];
        for (name, share) in [("cpus", 0.7), ("cpus_without_client", 0.2)] {
            let expected = 10.0 * 0.2 * time * share;
            let found = &subject[name];
            let [low, high] = [0, 1].map(|end| found["interval"][end].as_f64().expect("an interval"));
            let median = found["median"].as_f64().expect("a median");
            assert!((median / expected - 1.0).abs() < 0.02, "{name}: {expected} {subject}");
            assert!(low < median && median < high && high - low < 0.1 * median, "{subject}");
        }
    }
    let told = dunnage.run("advise probes DIR").stdout;
    assert!(told.contains("Health checks would take ") && told.contains("] of a CPU with a"), "{told}");
    // More than one in 100 ms find the kernel busy.
    let dense = dunnage.run("advise probes DIR --containers 500 --format json").stdout;
    assert!(dense.contains("prestate=primed") && dense.contains("\"rate\": 50.0"), "{dense}");
    let other = dunnage.run("run start -s a=fake --rounds 2 --seed 7 -o DIR-start");
    assert_eq!(other.code, 0, "{other}");
    let refused = dunnage.run("advise probes DIR-start");
    assert!(refused.code == 4 && refused.stderr.contains("dunnage run exec"), "{refused}");
}

/// Fourteen thousand latencies have a 99.9th percentile, and the thousand of a round have none.
#[test]
fn a_tail_is_that_of_all_rounds_together() {
    let values = |dunnage: &Dunnage, run: &str| {
        assert_eq!(dunnage.run(run).code, 0);
        let file: serde_json::Value =
            serde_json::from_str(&dunnage.run("report DIR --format json").stdout).unwrap();
        let values = &file["experiments"][0]["settings"][0]["ladders"][0]["cells"][0]["values"];
        values.as_array().expect("a list").clone()
    };
    let of = |values: &[serde_json::Value], metric: &str| {
        values.iter().find(|one| one["metric"] == metric).map(|one| one["median"].clone())
    };
    let dunnage = Dunnage::new();
    let found = values(&dunnage, RUN);
    let [median, tail] = ["latency", "latency_p999"].map(|name| of(&found, name).expect(name));
    let ratio = tail["estimate"].as_f64().unwrap() / median["estimate"].as_f64().unwrap();
    assert!((1.9..2.2).contains(&ratio), "{median} {tail}");
    assert_eq!((&tail["low"], &tail["rounds"]), (&serde_json::Value::Null, &14.into()));
    let csv = dunnage.run("report DIR --format csv").stdout;
    assert!(csv.contains(",latency,") && !csv.contains(",latency_p999,"), "{csv}");
    // The near miss: nine thousand have none either.
    let found = values(&Dunnage::new(), &RUN.replace("--rounds 14", "--rounds 9"));
    assert!(of(&found, "latency").is_some() && of(&found, "latency_p999").is_none(), "{found:?}");
}

/// What is not declared would not be in the vocabulary of a pack.
#[test]
fn every_name_of_a_sample_is_declared() {
    let dunnage = Dunnage::new();
    let experiments =
        "start lifecycle exec cpu net-latency net-throughput http dns disk layers owners scripted";
    let ran = dunnage.run(&format!("run {experiments} -s fake:time=1ms --rounds 1 --no-html -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let declared = dunnage::experiment::names();
    let lines = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    let mut seen = 0;
    for line in lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let kinds = ["stamps", "counters", "series", "distributions"].map(|kind| line[kind].as_object());
        for name in kinds.into_iter().flatten().flat_map(|all| all.keys()) {
            assert!(declared.contains(&name.as_str()), "{name}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}
