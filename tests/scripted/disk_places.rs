//! Places of files on the scripted subject: what a root adds, and bytes that never arrive at a device.

use dunnage::verdict::analyse;
use dunnage::verdict::table::Item;

use crate::dunnage::Dunnage;

#[test]
fn what_a_root_adds_is_found_and_bytes_that_do_not_arrive_are_no_disks() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run disk -s fake --no-vary --rounds 12 --seed 5 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = dunnage::record::load(&dunnage.directory()).unwrap();
    let analysis = analyse(&recorded);
    let table = analysis.experiment_tables.iter().find(|table| table.name == "speeds").unwrap();
    let told: Vec<_> = table
        .rows
        .iter()
        .map(|row| match (&row[1], &row[3], &row[4]) {
            (Item::Text(place), Item::Text(class), Item::Interval(write)) => {
                (place.as_str(), class.as_str(), write.value)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let [bind, root, volume, tmpfs] = told[..] else { panic!("{told:?}") };
    assert_eq!([bind, root, volume, tmpfs].map(|one| one.0), ["bind", "root", "volume", "tmpfs"]);
    assert_eq!([bind, root, volume, tmpfs].map(|one| one.1), ["durable", "durable", "not durable", "memory"]);
    assert!((root.2 / bind.2 - 2.0).abs() < 0.1, "{told:?}");
    // Memory may well be faster than a disk, so that is not suspect.
    assert!((tmpfs.2 / bind.2 - 0.1).abs() < 0.01, "{told:?}");
    let rules: Vec<_> =
        analysis.suspects.iter().map(|one| one.rule).filter(|rule| *rule != "not on the disk").collect();
    assert_eq!(rules, [""; 0], "{ran}");
    let cells: Vec<_> = analysis
        .suspects
        .iter()
        .filter(|one| one.rule == "not on the disk")
        .flat_map(|one| one.cells.iter().map(|cell| recorded.plan.cells[*cell].setting.get("place")))
        .collect();
    assert!(!cells.is_empty() && cells.iter().all(|place| *place == Some("volume")), "{cells:?}");
    let told = table.told().join("\n");
    assert!(told.contains("does not pass on its syncs; these are not disk speeds"), "{told}");
    let csv = dunnage.run("report DIR --format csv").stdout;
    let class = |metric: &str| {
        let own = |line: &&str| line.contains("place=volume") && line.contains(&format!(",{metric},"));
        let line = csv.lines().find(own).unwrap_or_else(|| panic!("no `{metric}`: {csv}"));
        line.split(',').nth_back(2).unwrap().to_owned()
    };
    assert_eq!([class("write_gb"), class("read_gb")], ["not durable", ""]);
    for wrong in ["size=0", "place=moon", "sync=never", "io=none"] {
        let refused = dunnage.run(&format!("run disk -s fake --set {wrong}"));
        assert_eq!(refused.code, 2, "{wrong}: {refused}");
    }
}
