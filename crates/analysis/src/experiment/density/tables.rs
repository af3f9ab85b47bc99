//! Two tables: how starts go with many containers and with several at once, and how many fit; with what people ask in sentences.

use super::ceiling::{Cause, serial};
use super::names::{FAILED, LOCK, PREDICTED};
use super::of::{Of, estimate, samples, setting};
use super::{NAME, Room, at_once, containers, room, until, why};
use crate::stats::{self, Decision, Estimate, Shape, decide};
use crate::subject::room::Resource;
use crate::text::{estimated, number};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};

/// How many of a subject's resources are shown: those that end first.
const SHOWN: usize = 3;
/// A start that gets longer by less than this is as long as before.
const LONGER: f64 = 1e-3;

/// The tables.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let is_shown = |cell: &usize| {
        let entry = view.plan().entry(*cell);
        entry.twin_of.is_none() && entry.variant_of.is_none()
    };
    let mut subjects: Vec<Of<'_>> = Vec::new();
    for cell in view.cells_of(NAME).filter(is_shown) {
        let label = view.label(cell);
        let at = subjects.iter().position(|own| own.label == label).unwrap_or_else(|| {
            subjects.push(Of { view, label, series: None, bursts: Vec::new() });
            subjects.len() - 1
        });
        match at_once(setting(view, cell)) {
            1 => subjects[at].series = subjects[at].series.or(Some(cell)),
            _ => subjects[at].bursts.push(cell),
        }
    }
    let has_values = |own: &Of<'_>| {
        own.series
            .into_iter()
            .chain(own.bursts.iter().copied())
            .any(|cell| estimate(view, cell, "start").is_some())
    };
    if !subjects.iter().any(has_values) {
        return Vec::new();
    }
    for own in &mut subjects {
        own.bursts.sort_by_key(|cell| at_once(setting(view, *cell)));
    }
    let starts = starts(&subjects);
    let rooms = rooms(&subjects);
    [Some(starts), why::table(&subjects), rooms].into_iter().flatten().collect()
}

impl Of<'_> {
    fn has_slope(&self) -> bool {
        let slope = self.of_series("slope");
        slope.and_then(|slope| slope.interval).is_some_and(|one| !one.contains(0.0))
    }

    /// What the shape is called; the slope says how much.
    fn shape_in_words(&self) -> String {
        match self.shape() {
            // A slope that is certain and too small to be told by a shape.
            Some(Shape::Constant) if self.has_slope() => "no shape can be told".to_owned(),
            None => "no shape can be told".to_owned(),
            Some(Shape::Constant) => "constant".to_owned(),
            Some(Shape::Linear(slope)) if slope < 0.0 => "linear, falling".to_owned(),
            Some(Shape::Linear(_)) => "linear".to_owned(),
            Some(Shape::Saturating(places)) => format!("levels off after about {places:.0}"),
            Some(Shape::Hinge(place, _)) => format!("rises from the {place:.0}th on"),
        }
    }

    /// With `until`: what was used up, how many the first ones foretold, and how many there were.
    fn ended(&self) -> Option<String> {
        let cell = self.most()?;
        let words = until(setting(self.view, cell))?.words();
        let (started, label) = (self.started(cell)?, self.label);
        let foretold = samples(self.view, cell).filter_map(|one| Some(one.counter(PREDICTED)? as f64));
        let foretold = stats::Sample::new(foretold.collect::<Vec<_>>())?.median();
        let why = self.view.run.facts(cell, FAILED).flatten().next_back();
        let why = why.and_then(|why| Some(why.split_once(", first: ")?.1));
        Some(match why {
            Some(why) => format!(
                "{label}: {started} containers ran, {foretold:.0} were predicted by {words}; the next one: {why}"
            ),
            None => format!(
                "{label}: {started} containers ran, more than the {foretold:.0} that were predicted by {words}, and none was refused"
            ),
        })
    }

    /// What is known of the cause, in words.
    fn cause(&self) -> Option<String> {
        let most = *self.bursts.last()?;
        let seen = self.seen(most)?;
        let (found, alone) = (self.ceiling()?, self.of_series("start")?.value);
        let short = |seconds: f64| Unit::Seconds.format(seconds);
        let cause = match found.cause {
            Cause::Cpus => format!("the CPUs: each start takes {} of CPU time", short(seen.cpu)),
            Cause::Disk => format!("the disk: flushes take {} for each start", short(seen.flushing)),
            Cause::Alone => "nothing: each takes as long as alone".to_owned(),
            Cause::Lock => {
                let path = self.view.run.facts(most, LOCK).flatten().next_back().unwrap_or("a file");
                format!(
                    "a lock: {} of each start is one after the other, and others wait for `{path}`",
                    short(serial(&seen, alone))
                )
            }
            Cause::Others => format!("not told: others used {} CPUs meanwhile", number(seen.others, 1)),
            Cause::Serial => match why::freed(self) {
                Some(without) => format!(
                    "what is not there with {without}: up to {} of each start is one after the other",
                    short(serial(&seen, alone))
                ),
                None => format!(
                    "not resolved: up to {} of each start is one after the other",
                    short(serial(&seen, alone))
                ),
            },
            Cause::Unknown => "not told: the CPU time of a start is not known".to_owned(),
        };
        let is_named = ![Cause::Others, Cause::Unknown].contains(&found.cause);
        Some(match found.predicted {
            None if is_named => {
                format!("{cause} (not tested with fewer at once)")
            }
            Some((predicted, false)) if is_named => {
                let fewer =
                    self.bursts.iter().rev().nth(1).map_or(0, |cell| at_once(setting(self.view, *cell)));
                format!(
                    "{cause}; not confirmed: it predicts {} a second at {fewer} at once",
                    number(predicted, 1)
                )
            }
            _ => cause,
        })
    }

    fn longer(&self) -> Option<String> {
        let (count, _) = self.of_all()?;
        let longer = self.of_series("longer")?;
        let (label, more) = (self.label, estimated(Unit::Seconds, &longer.map(f64::abs)));
        match decide(&longer, LONGER) {
            Decision::More => {
                Some(format!("{label}: the start of container {count} takes {more} longer than the first"))
            }
            Decision::Less => {
                Some(format!("{label}: the start of container {count} takes {more} less than the first"))
            }
            Decision::Same => Some(format!(
                "{label}: the start of container {count} takes as long as the first, within {}",
                Unit::Seconds.format(LONGER)
            )),
            Decision::Undecided { .. } | Decision::TooFew { .. } => None,
        }
    }

    /// What the engine computes while nothing is asked of it.
    fn idle(&self) -> Option<String> {
        let (count, _) = self.of_all()?;
        let used = estimated(Unit::Seconds, &self.of_series("idle_cpu")?);
        Some(format!(
            "{}: its daemons and helpers compute for {used} in a minute in which {count} containers do nothing",
            self.label
        ))
    }

    /// What failed, with its number.
    fn failed(&self) -> Vec<String> {
        let one = |cell: usize| {
            if until(setting(self.view, cell)).is_some() {
                return None;
            }
            let words = self.view.run.facts(cell, FAILED).flatten().next_back()?;
            Some(format!("{} with {} at once: {words}", self.label, at_once(setting(self.view, cell))))
        };
        self.series.into_iter().chain(self.bursts.iter().copied()).filter_map(one).collect()
    }

    /// The resources that end first, each with its medians over the rounds.
    fn rooms(&self) -> Vec<(Resource, Room)> {
        let Some(cell) = self.most() else { return Vec::new() };
        let one = |resource: Resource| {
            let found: Vec<Room> =
                samples(self.view, cell).filter_map(|sample| room(sample, resource)).collect();
            let count = samples(self.view, cell).count();
            // What comes and goes without them is not what containers use.
            let each = stats::Sample::new(found.iter().map(|one| one.each).collect::<Vec<_>>())?;
            let interval = Estimate::of_median(&each, stats::Alpha::FIVE_PERCENT).interval;
            let is_steady = interval.is_none_or(|one| one.low * 2.0 > one.high);
            let is_known = found.len() == count && is_steady;
            let middle = |of: fn(&Room) -> f64| {
                Some(stats::Sample::new(found.iter().map(of).collect::<Vec<_>>())?.median())
            };
            Some(Room {
                each: middle(|one| one.each)?,
                limit: middle(|one| one.limit)?,
                others: middle(|one| one.others)?,
                fits: middle(|one| one.fits)?,
            })
            .filter(|_| is_known)
            .map(|room| (resource, room))
        };
        let mut all: Vec<_> = Resource::ALL.into_iter().filter_map(one).collect();
        all.sort_by(|one, other| one.1.fits.total_cmp(&other.1.fits));
        all
    }
}

fn starts(subjects: &[Of<'_>]) -> ExperimentTable {
    let view = subjects[0].view;
    let series = subjects.iter().find_map(|own| own.series).map(|cell| containers(setting(view, cell)));
    let mut at_onces: Vec<usize> =
        subjects.iter().flat_map(|own| &own.bursts).map(|cell| at_once(setting(view, *cell))).collect();
    at_onces.sort_unstable();
    at_onces.dedup();
    let mut columns = vec![Column::of_texts("subject")];
    if let Some(count) = series {
        let places = [("first", 1), ("10th", 10)].into_iter().filter(|(_, place)| *place < count);
        columns.extend(places.map(|(name, _)| Column::of_values(name, Unit::Seconds)));
        let is_known =
            subjects.iter().filter_map(|own| own.series).all(|cell| until(setting(view, cell)).is_none());
        let last = if is_known { format!("{count}th") } else { "last".to_owned() };
        columns.push(Column::of_values(&last, Unit::Seconds));
        columns.push(Column::of_values("each one more", Unit::Seconds));
        columns.push(Column::of_texts("shape"));
    }
    columns.extend(at_onces.iter().map(|own| Column::of_values(&format!("{own} at once"), Unit::PerSecond)));
    let has_ceiling = series.is_some() && !at_onces.is_empty();
    if has_ceiling {
        columns.extend([Column::of_values("ceiling", Unit::PerSecond), Column::of_texts("because of")]);
    }
    let explains = ["10th", "shape", "because of"];
    let answer = (0..columns.len()).filter(|at| !explains.contains(&columns[*at].name.as_str())).collect();
    let row = |own: &Of<'_>| {
        let value = |metric| Item::value(own.of_series(metric).map(|one| one.value), "not known");
        let mut row = vec![Item::Text(own.label.to_owned())];
        if let Some(count) = series {
            row.extend(
                [("first", 1), ("tenth", 10)]
                    .into_iter()
                    .filter(|(_, place)| *place < count)
                    .map(|(name, _)| value(name)),
            );
            row.push(value("last"));
            let slope = own.of_series("slope").filter(|one| one.interval.is_some());
            row.push(slope.map_or(Item::Nothing("not known".to_owned()), Item::Interval));
            row.push(Item::Text(own.shape_in_words()));
        }
        row.extend(at_onces.iter().map(|wanted| {
            let cell = own.bursts.iter().find(|cell| at_once(setting(view, **cell)) == *wanted);
            Item::value(cell.and_then(|cell| Some(estimate(view, *cell, "rate")?.value)), "not known")
        }));
        if has_ceiling {
            row.push(Item::value(own.ceiling().map(|one| one.rate), "not known"));
            row.push(own.cause().map_or(Item::Nothing("not known".to_owned()), Item::Text));
        }
        row
    };
    let longer: Vec<String> = subjects.iter().filter_map(Of::longer).collect();
    let idle = subjects.iter().filter_map(Of::idle).collect::<Vec<_>>();
    let failed: Vec<String> = subjects.iter().flat_map(Of::failed).collect();
    ExperimentTable {
        rows: subjects.iter().map(row).collect(),
        notes: [
            series.map(|_| {
                "first to last: one detached start of a series, from the command until it has returned; each one more: what a container that \
                 runs adds to the next start; a shape is named only if it errs less in rounds that it was not fitted to"
            }),
            has_ceiling.then_some(
                "at once: starts a second; ceiling: what the CPUs, the flushes of the disk or the length of a start allow, or what is seen if \
                 that is below all of them",
            ),
            (!has_ceiling && !at_onces.is_empty()).then_some("at once: starts a second"),
        ]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect(),
                answers: [
            Answer::decided("is the last slower?", longer),
            Answer::all("what do idle ones use?", idle),
            Answer::all("do all start?", failed),
        ]
        .concat(),
                screen: Screen::Part { columns: answer, rows: (0..subjects.len()).collect() },
        ..ExperimentTable::new(NAME, "starts", "how starts go with many containers, and several at once".to_owned(), columns)
    }
}

fn rooms(subjects: &[Of<'_>]) -> Option<ExperimentTable> {
    let mut rows = Vec::new();
    let mut summary = Vec::new();
    for own in subjects {
        let all = own.rooms();
        let shown = |resource: Resource, value: f64| {
            if resource.is_in_bytes() {
                Unit::Bytes.format(value)
            } else {
                number(value, usize::from(value < 10.0 && value.fract() != 0.0))
            }
        };
        for (resource, room) in all.iter().take(SHOWN) {
            // What is left has no limit of its own.
            let is_left = room.limit <= 0.0;
            let limit = if is_left { -room.others } else { room.limit };
            let others = if is_left { 0.0 } else { room.others };
            rows.push(vec![
                Item::Text(own.label.to_owned()),
                Item::Text(resource.words().to_owned()),
                Item::Text(shown(*resource, room.each)),
                Item::Text(shown(*resource, limit)),
                Item::Text(shown(*resource, others)),
                Item::Value(room.fits),
                Item::Text(resource.at_the_end().to_owned()),
            ]);
        }
        if let Some(ended) = own.ended() {
            summary.push(ended);
            continue;
        }
        if let Some((resource, room)) = all.first() {
            let Some((tried, has_all)) = own.tried() else { continue };
            if !has_all {
                // What ended them may be something that is not counted.
                let known = if room.fits <= tried as f64 {
                    format!(": {} ended", resource.words())
                } else {
                    String::new()
                };
                summary.push(format!("{}: no more than {tried} containers were started{known}", own.label));
                continue;
            }
            let beyond = room.fits / tried as f64;
            let far = if beyond > 2.0 {
                format!(" ({beyond:.0} times as many as were tried: reckoned, not seen)")
            } else {
                String::new()
            };
            summary.push(format!(
                "{}: {} containers by what each uses{far}; what ends first: {}",
                own.label,
                number(room.fits, 0),
                resource.words()
            ));
        }
    }
    let columns = vec![
        Column::of_texts("subject"),
        Column::of_texts("resource"),
        Column::of_texts("each uses"),
        Column::of_texts("limit"),
        Column::of_texts("others use"),
        Column::of_values("room for", Unit::Count),
        Column::of_texts("then"),
    ];
    (!rows.is_empty()).then(|| ExperimentTable {
        rows,
        notes: vec![
            "the resources that end first, of twelve that are counted before the first container and with the last; 512 MiB or 5 % of memory \
             stay free; what containers do later is not in it"
                .to_owned(),
        ],
                answers: Answer::all("how many fit?", summary),
        ..ExperimentTable::new(NAME, "room", "how many containers fit, and what ends first".to_owned(), columns)
    })
}
