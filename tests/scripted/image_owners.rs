//! The first container on an image on the scripted subject: what it takes for each file is found.

use dunnage::verdict::analyse;
use dunnage::verdict::table::Item;

use crate::dunnage::Dunnage;

#[test]
fn what_the_first_container_takes_for_each_file_is_found() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run owners -s fake:time=200ms --no-vary --set files=10000 --set files=4 --rounds 12 --seed 5 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let analysis = analyse(&dunnage::record::load(&dunnage.directory()).unwrap());
    let table = analysis.experiment_tables.iter().find(|table| table.name == "owners").unwrap();
    let added: Vec<f64> = table
        .rows
        .iter()
        .map(|row| match &row[4] {
            Item::Interval(added) => added.value,
            other => panic!("{other:?}"),
        })
        .collect();
    let [many, few] = added[..] else { panic!("{added:?}") };
    // A tenth of a millisecond for each of 10,000 files, and nothing to speak of for four.
    assert!((many - 1.0).abs() < 0.05 && few.abs() < 0.01, "{added:?}");
    let told = table.told().join("\n");
    assert!(told.contains("first container on an image of 4 files takes as long as later ones"), "{told}");
    assert!(told.contains("image of 10000 files takes 1.0") && told.contains(" s ["), "{told}");
    assert!(told.contains("longer than later ones: every file is given to its new owner"), "{told}");
    assert!(ran.stdout.contains("chowned") && analysis.suspects.is_empty(), "{ran}");
    for wrong in ["files=0", "files=many", "files=1000001"] {
        let refused = dunnage.run(&format!("run owners -s fake --set {wrong}"));
        assert_eq!(refused.code, 2, "{wrong}: {refused}");
    }
}
