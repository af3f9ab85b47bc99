//! Files of an image on the scripted subject: what changing them copies, what depth adds to opening them, and what makes no
//! difference.

use dunnage::verdict::analyse;
use dunnage::verdict::table::{ExperimentTable, Item};

use crate::dunnage::Dunnage;

fn text(item: &Item) -> &str {
    match item {
        Item::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

fn interval(table: &ExperimentTable, row: usize, column: &str) -> f64 {
    let at = table.columns.iter().position(|one| one.name == column).unwrap();
    match &table.rows[row][at] {
        Item::Interval(found) => found.value,
        Item::Value(value) => *value,
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn what_a_change_copies_and_what_depth_adds_are_found_and_nothing_else() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run layers -s fake=fake:noise=0.2 --no-vary --rounds 16 --seed 5 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = dunnage::record::load(&dunnage.directory()).unwrap();
    let analysis = analyse(&recorded);
    let table = |name: &str| analysis.experiment_tables.iter().find(|table| table.name == name).unwrap();
    let answers: Vec<_> = table("answers")
        .rows
        .iter()
        .map(|row| (text(&row[0]), text(&row[1]).split(' ').next().unwrap()))
        .collect();
    let expected = [
        ("change: a large file, not a small one", "slower"),
        ("change: ten files, not one", "same"),
        ("change: an image's file, not a new one", "same"),
        ("write: to the root, not to a mount", "same"),
        ("change: in the root, not in a mount", "slower"),
        ("read: from the root, not from a mount", "same"),
        ("open: of the first layer, not the last", "slower"),
        ("read: of the first layer, not the last", "same"),
        ("change: of the first layer, not the last", "same"),
        ("open: of many layers, not of few", "slower"),
        ("change: of many layers, not of few", "same"),
    ];
    assert_eq!(answers, expected, "{ran}");
    // A gigabyte takes a thousand times the scripted time of 1 ms, and a layer a tenth of the 1 µs that an opening takes.
    let copies = table("copy-up");
    let (each_gb, each_layer) = (interval(copies, 0, "each GB"), interval(copies, 0, "each layer"));
    assert!((each_gb / 1.0 - 1.0).abs() < 0.05, "{each_gb}");
    assert!((each_layer / 1e-7 - 1.0).abs() < 0.1, "{each_layer}");
    assert!(interval(copies, 0, "R²") > 0.98);
    assert_eq!(text(&copies.rows[0][2]), "the whole file");
    let told = table("answers").told().join("\n");
    assert!(told.contains("copies all of it; each GB takes: fake 1.0"), "{told}");
    assert!(
        told.contains("depth or number of layers matters to fake (open: of the first layer, not the last: "),
        "{told}"
    );
    assert_eq!(analysis.suspects.len(), 0, "{ran}");
}

#[test]
fn layers_and_places_that_do_not_go_together_are_refused() {
    let dunnage = Dunnage::new();
    for wrong in ["layers=2", "layers=501", "at=middle", "layers.size=1", "layers=0 --set at=first"] {
        let refused = dunnage.run(&format!("run layers -s fake --set {wrong}"));
        assert_eq!(refused.code, 2, "{wrong}: {refused}");
    }
    let refused = dunnage.run("plan layers -s bare --set at=first");
    assert!(refused.code == 4 && refused.to_string().contains("it has no image with layers"), "{refused}");
    let plan = dunnage.run("plan layers -s fake --no-vary --set layers=50 --full");
    assert!(plan.code == 0 && plan.stdout.contains("at=bind"), "{plan}");
}
