//! What does each published port add to a start? Subjects that differ only in how many ports they publish, and the line
//! through their launches.

use super::START;
use crate::experiment::Setting;
use crate::experiment::command::tables::{heads, named};
use crate::group::in_groups;
use crate::stats::{self, Line, Rng};
use crate::text::estimated;
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, notes};

/// The random stream for resampling.
const STREAM: u64 = 0x706f_7274_7300;

/// Subjects that differ only in how many ports they publish, in one setting.
struct Family<'a> {
    /// What they have in common.
    name: String,
    setting: &'a Setting,
    /// The number of ports and the cell of each, by number.
    members: Vec<(u16, usize)>,
}

fn families<'a>(view: &View<'a>) -> Vec<Family<'a>> {
    let spec = |cell: usize| &view.plan().entry(cell).spec;
    let kind = |cell: &usize| (spec(*cell).without("publish").to_string(), &view.cell(*cell).setting);
    let family = |((name, setting), cells): ((String, &'a Setting), Vec<usize>)| {
        let mut members: Vec<_> = cells.into_iter().map(|cell| (spec(cell).published(), cell)).collect();
        members.sort_unstable();
        (members.first()?.0 != members.last()?.0).then_some(Family { name, setting, members })
    };
    in_groups(view.originals_of(START.name), kind).into_iter().filter_map(family).collect()
}

/// The line through the launches of all members, round by round.
fn fitted(view: &View<'_>, family: &Family<'_>, rng: &mut Rng) -> Option<Line> {
    let values = |&(ports, cell): &(u16, usize)| {
        let own = view.columns.get(cell, view.metric_index(cell, "returned")?);
        Some(own.iter().map(|value| value.map(|value| (f64::from(ports), value))).collect::<Vec<_>>())
    };
    let members: Vec<_> = family.members.iter().filter_map(values).collect();
    let rounds = members.first()?.len();
    let points: Vec<Vec<(f64, f64)>> =
        (0..rounds).map(|round| members.iter().filter_map(|own| own[round]).collect()).collect();
    stats::line(&points, rng, view.plan().level(1))
}

/// How many processes forward the ports of a cell; none if processes were not counted.
fn helpers(view: &View<'_>, cell: usize) -> Option<f64> {
    let counted = view.estimate_of(cell, "port_helpers").map(|count| count.value);
    counted.or_else(|| view.estimate_of(cell, "client_cpu").map(|_| 0.0))
}

/// The times over the number of ports, and the lines through them.
pub fn tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let families = families(view);
    let Some(first) = families.first() else { return Vec::new() };
    let shows_settings = families.iter().any(|one| one.setting != first.setting);
    let head = || heads(shows_settings).into_iter();
    let named = |label: &str, family: &Family<'_>| named(label, shows_settings.then_some(family.setting));
    let mut rng = Rng::for_stream(view.plan().seed, STREAM);
    let (mut points, mut lines, mut summary) = (Vec::new(), Vec::new(), Vec::new());
    for family in &families {
        let line = fitted(view, family, &mut rng);
        for &(ports, cell) in &family.members {
            let on_line = line.map(|line| line.fixed.value + line.proportional.value * f64::from(ports));
            let values = [
                Item::Value(f64::from(ports)),
                Item::interval(view.estimate_of(cell, "returned"), "no values"),
                Item::value(on_line, "no line"),
                Item::value(helpers(view, cell), "not counted"),
            ];
            points.push(named(view.label(cell), family).chain(values).collect());
        }
        let Some(line) = line else { continue };
        lines.push(
            named(&family.name, family).chain([line.fixed, line.proportional].map(Item::Interval)).collect(),
        );
        summary.extend(sentence(view, family, line, shows_settings));
    }
    let times = ["returned", "on the line"].map(|name| Column::of_values(name, Unit::Seconds));
    let counts = ["ports", "helpers"].map(|name| Column::of_values(name, Unit::Count));
    let [ports, helpers] = counts;
    let columns = head().chain([ports]).chain(times).chain([helpers]).collect();
    let title = "time of a start (`returned`) over the number of published ports".into();
    let points = ExperimentTable {
        rows: points,
        notes: notes([
            "medians with their 95 % intervals; helpers are processes that the engine starts in a launch only to \
             forward ports; engines whose network or firewall forwards them need none",
        ]),
        ..ExperimentTable::new(START.name, "published-ports", title, columns)
    };
    let ends = ["without ports", "each port adds"].map(|name| Column::of_values(name, Unit::Seconds));
    let title = "what each published port adds to a start (`returned`)".into();
    let lines = ExperimentTable {
        rows: lines,
        notes: notes([
            "a least-squares line through all launches of subjects that differ only in `publish`; 95 % intervals by \
             resampling rounds; two numbers of ports are always on a line, more show whether there is one",
        ]),
        answers: Answer::all("what does a port cost?", summary),
        ..ExperimentTable::new(START.name, "cost-of-a-port", title, head().chain(ends).collect())
    };
    vec![points, lines]
}

/// What each port adds, and what the most ports cost.
fn sentence(view: &View<'_>, family: &Family<'_>, line: Line, shows_setting: bool) -> Option<String> {
    let (&(fewest, _), &(most, last)) = (family.members.first()?, family.members.last()?);
    let few = if line.proportional.interval.is_none() { ", too few rounds for an interval" } else { "" };
    let adds = estimated(Unit::Seconds, &line.proportional);
    let of = if shows_setting { family.setting.in_brackets() } else { String::new() };
    let takes = Unit::Seconds.format(view.estimate_of(last, "returned")?.value);
    let helpers = helpers(view, last).filter(|count| *count > 0.0);
    let helpers = helpers.map_or(String::new(), |count| format!(" and has {count} helper processes"));
    Some(format!(
        "{}{of}: each published port adds {adds} to a start (`returned`, {fewest} to {most} ports{few}); with {most} ports \
         it takes {takes}{helpers}",
        family.name
    ))
}
