//! The report for an issue, a wiki, or a comment on a pull request, in GitHub's Markdown: what must not be believed and
//! the answer first, then what each subject takes, what was predicted, and folded away the comparisons, the environment
//! and how to repeat it, so that whoever reads it can judge.
//!
//! Texts from outside are shown as they are and never as markup: see [`escaped`]. A comment may have no more than 65,536
//! characters; where a run has more to say, the last rows are left out, and it is said how many.

use std::fmt::Write as _;

use super::model::{Change, Experiment, Ladder, Metric, Report, Row, Setting, Topic};
use super::text::{in_percent, percent, with_interval};
use super::{Format, Look, Rendering};
use crate::stats::Estimate;
use crate::units::{Unit, counted, three_digits};
use crate::verdict::Verdict;
use crate::verdict::exhibit::{Exhibit, Item};

/// The format `md`.
pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "md"
    }

    fn description(&self) -> &'static str {
        "for an issue, a wiki or a comment: the answer, tables, warnings and the environment, in GitHub's Markdown"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Whole(render)
    }
}

/// What GitHub takes in one comment, in characters.
pub const LONGEST: usize = 65_536;
/// The report as Markdown.
pub fn render(report: &Report, look: &Look) -> String {
    let mut limit = LONGEST;
    loop {
        let text = within(report, look, limit);
        let over = text.chars().count().saturating_sub(LONGEST);
        if over == 0 || limit == 0 {
            return text;
        }
        // What follows the tables needs this much.
        limit = limit.saturating_sub(over + 100);
    }
}

/// The report, with rows of tables as long as what stands before them has no more characters than this.
fn within(report: &Report, look: &Look, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit, left_out: 0 };
    head(&mut page, report);
    doubts(&mut page, report);
    answer(&mut page, report);
    predictions(&mut page, report);
    job(&mut page, report);
    for experiment in &report.experiments {
        of_experiment(&mut page, experiment);
    }
    failures(&mut page, report);
    warnings(&mut page, report);
    let cut = page.left_out;
    page.limit = usize::MAX;
    environment(&mut page, report, look);
    if cut > 0 {
        let rows = counted(cut, "row");
        page.paragraph(&format!(
            "_{rows} of tables left out, since a comment has no room for them; the JSON report has all._"
        ));
    }
    page.text
}

/// Markdown under construction.
struct Page {
    text: String,
    limit: usize,
    left_out: usize,
}

impl Page {
    fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}\n");
    }

    fn list(&mut self, lines: impl IntoIterator<Item = String>) {
        let before = self.text.len();
        for line in lines {
            let _ = writeln!(self.text, "- {line}");
        }
        if self.text.len() > before {
            self.text.push('\n');
        }
    }

    /// A table of cells that are escaped already; rows for which a comment has no room are counted instead.
    fn table(&mut self, columns: &[String], rows: Vec<Vec<String>>) {
        if rows.is_empty() {
            return;
        }
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rule: Vec<String> =
            (0..columns.len()).map(|index| if index == 0 { "---".into() } else { "---:".into() }).collect();
        let _ = writeln!(self.text, "{}\n{}", line(columns), line(&rule));
        let mut used = self.text.chars().count();
        for row in rows {
            let line = line(&row);
            used += line.chars().count() + 1;
            if used > self.limit {
                self.left_out += 1;
                continue;
            }
            let _ = writeln!(self.text, "{line}");
        }
        self.text.push('\n');
    }

    fn folded(&mut self, title: &str, write: impl FnOnce(&mut Page)) {
        let _ = writeln!(self.text, "<details>\n<summary>{title}</summary>\n");
        write(self);
        let _ = writeln!(self.text, "</details>\n");
    }
}

/// A text as it stands in prose and in tables, whatever it holds: no markup, no HTML, no mention of a person or an issue,
/// no link, no end of a table's cell.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A character without width keeps names and numbers from being looked up.
            '@' | '#' => {
                out.push(letter);
                out.push_str("&#8203;");
            }
            ':' if letters.peek() == Some(&'/') => out.push_str("&#58;"),
            'w' | 'W' if out.to_ascii_lowercase().ends_with("ww") && letters.peek() == Some(&'.') => {
                out.push(letter);
                out.push_str("&#8203;");
            }
            '\\' | '`' | '*' | '_' | '|' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            '[' if letters.peek() == Some(&'^') => out.push_str("\\["),
            ']' if matches!(letters.peek(), Some('(' | '[' | ':')) => out.push_str("\\]"),
            letter => out.push(letter),
        }
    }
    out
}

/// A sentence of the report, in which metrics and labels stand in backticks.
fn sentence(text: &str) -> String {
    escaped(&text.replace('`', ""))
}

fn shown(unit: Unit, estimate: &Estimate) -> String {
    escaped(&with_interval(unit, estimate.value, estimate.interval.map(|one| (one.low, one.high))))
}

fn head(page: &mut Page, report: &Report) {
    let names: Vec<&str> = report.experiments.iter().map(|one| one.name).collect();
    page.paragraph(&format!("## dunnage: {}", names.join(", ")));
    let fact = |name: &str| report.machine.iter().find(|(own, _)| own == name).map(|(_, fact)| escaped(fact));
    let facts = ["distribution", "kernel", "cpu", "hypervisor"].into_iter().filter_map(fact);
    let facts: Vec<String> = facts.collect();
    let rounds = report.rounds;
    page.paragraph(&format!(
        "{} of {} in shuffled order · {} · run {} · {} · dunnage {}",
        rounds.complete,
        counted(rounds.planned, "round"),
        facts.join(" · "),
        escaped(&report.run),
        escaped(&report.started.chars().take(19).collect::<String>()),
        escaped(&report.dunnage)
    ));
}

fn doubts(page: &mut Page, report: &Report) {
    if report.suspects.is_empty() {
        return;
    }
    page.paragraph("### Suspect: do not believe these numbers");
    page.list(report.suspects.iter().map(|one| {
        format!("**{}**: {}; probably: {}", one.rule, escaped(&one.evidence), escaped(&one.mechanism))
    }));
}

fn answer(page: &mut Page, report: &Report) {
    page.paragraph("### In short");
    if report.samples == 0 {
        let why = report.failures.first().map_or("no sample was taken", |one| one.reason.as_str());
        return page.paragraph(&format!("Nothing was measured: {}", escaped(why)));
    }
    let exhibits = report.experiments.iter().flat_map(|one| &one.exhibits).flat_map(|one| &one.summary);
    let sentences = report.sentences.iter().filter(|one| one.topic != Topic::Difference);
    page.list(exhibits.map(|text| sentence(text)).chain(sentences.map(|one| sentence(&one.text))));
}

fn predictions(page: &mut Page, report: &Report) {
    if report.predictions.is_empty() {
        return;
    }
    page.paragraph("### Predicted before measuring");
    let rows = report.predictions.iter().flat_map(|one| {
        let whole = vec![escaped(&one.text), format!("**{}**", one.came.words()), String::new()];
        let links = one.links.iter().map(|link| {
            let setting = if link.values.is_empty() { String::new() } else { format!(" ({})", link.values) };
            let text = escaped(&format!("… {}{setting}", link.text));
            vec![text, link.came.words().to_owned(), sentence(&link.because)]
        });
        std::iter::once(whole).chain(links)
    });
    let rows = rows.collect();
    page.table(&["prediction", "outcome", "found"].map(str::to_owned), rows);
}

fn job(page: &mut Page, report: &Report) {
    let Some(job) = &report.job else { return };
    page.paragraph(&format!("### What is added to a job of {}", Unit::Seconds.format(job.length)));
    let rows = job.shares.iter().map(|one| {
        let setting = if one.values.is_empty() { String::new() } else { format!(", {}", one.values) };
        vec![
            escaped(&one.label),
            escaped(&format!("{}{setting}", one.occasion)),
            shown(Unit::Share, &one.share),
            escaped(&one.against),
            one.verdict.word().to_owned(),
        ]
    });
    let rows = rows.collect();
    page.table(&["subject", "for each", "of the job", "more than", "verdict"].map(str::to_owned), rows);
    page.paragraph(super::model::JOB_HOLDS);
}

fn of_experiment(page: &mut Page, experiment: &Experiment) {
    page.paragraph(&format!("### {}", experiment.name));
    page.paragraph(&format!("_{}_", escaped(experiment.question)));
    if !experiment.speaks_for_itself() {
        for setting in &experiment.settings {
            for ladder in &setting.ladders {
                one_ladder(page, experiment, setting, ladder);
            }
        }
        page.folded(&format!("all comparisons of {}", experiment.name), |page| comparisons(page, experiment));
    }
    for one in &experiment.exhibits {
        page.folded(&escaped(&one.title), |page| exhibit(page, one));
    }
    for list in &experiment.price_lists {
        page.folded(&escaped(&format!("prices of {}", list.label)), |page| prices(page, experiment, list));
    }
    let meanings = experiment.metrics.iter().map(|one| format!("`{}`: {}", one.name, escaped(one.meaning)));
    let meanings: Vec<String> = meanings.collect();
    page.folded(&format!("what lies inside the numbers of {}", experiment.name), |page| page.list(meanings));
}

/// The metrics that are decided upon; of an experiment without any, the first.
fn shown_metrics(experiment: &Experiment) -> Vec<(usize, &Metric)> {
    let all = experiment.metrics.iter().enumerate();
    let decisive: Vec<_> = all.clone().filter(|(_, metric)| metric.decisive).collect();
    if decisive.is_empty() { all.take(1).collect() } else { decisive }
}

fn one_ladder(page: &mut Page, experiment: &Experiment, setting: &Setting, ladder: &Ladder) {
    let named = [setting.text.as_str(), ladder.name, ladder.shared_keys.as_str()];
    let named: Vec<String> = named.into_iter().filter(|text| !text.is_empty()).map(escaped).collect();
    page.paragraph(&format!("**{}**", named.join(", ")));
    let metrics = shown_metrics(experiment);
    let mut columns = vec!["subject".to_owned()];
    for (index, metric) in &metrics {
        columns.push(format!("`{}`", metric.name));
        if *index == 0 {
            columns.extend([format!("× {}", escaped(&ladder.baseline)), "verdict".to_owned()]);
        }
    }
    let row =
        |row: &Row| {
            let mut cells = vec![escaped(&row.short)];
            for (index, metric) in &metrics {
                let value = row.values.get(*index).and_then(Option::as_ref);
                let doubt = if row.is_suspect(*index) { " suspect" } else { "" };
                cells.push(value.map_or("–".to_owned(), |value| {
                    format!("{}{doubt}", shown(metric.unit, &value.median))
                }));
                if *index == 0 {
                    let change = row.against_baseline.first().and_then(Option::as_ref);
                    let ratio = change.and_then(|change| change.ratio);
                    let own = if row.is_baseline { "1" } else { "" };
                    cells.push(ratio.map_or(own.to_owned(), |ratio| three_digits(ratio.value)));
                    cells.push(change.map_or(String::new(), |change| change.verdict.word().to_owned()));
                }
            }
            cells
        };
    page.table(&columns, ladder.rows.iter().map(row).collect());
}

/// Every comparison of decisive metrics, what is decided first by kind of pair.
fn comparisons(page: &mut Page, experiment: &Experiment) {
    let margin = |metric: &Metric| {
        let (absolute, relative) = metric.margin;
        format!("{} or {}", with_interval(metric.unit, absolute, None), percent(relative))
    };
    let margins =
        shown_metrics(experiment).into_iter().map(|(_, one)| format!("`{}` {}", one.name, margin(one)));
    let margins: Vec<String> = margins.collect();
    page.paragraph(&format!(
        "Median of the differences round by round, with its interval. Below {}, the larger, no difference matters.",
        margins.join(", ")
    ));
    let mut rows = Vec::new();
    for pair in experiment.pairs.iter().chain(&experiment.twins) {
        for change in pair.changes.iter().filter(|change| experiment.metrics[change.metric].decisive) {
            rows.push(vec![
                sentence(&pair.phrase),
                escaped(experiment.settings.get(change.setting).map_or("", |setting| &setting.values)),
                format!("`{}`", experiment.metrics[change.metric].name),
                difference(experiment, change),
                change.ratio.map_or(String::new(), |ratio| escaped(&in_percent(&ratio))),
                verdict(change),
            ]);
        }
    }
    page.table(&["compared", "setting", "metric", "difference", "ratio", "verdict"].map(str::to_owned), rows);
}

fn difference(experiment: &Experiment, change: &Change) -> String {
    let unit = experiment.metrics[change.metric].unit;
    change.difference.map_or("–".to_owned(), |difference| shown(unit, &difference))
}

fn verdict(change: &Change) -> String {
    match (&change.verdict, change.hidden_by_noise) {
        (Verdict::Suspect(index), _) => format!("suspect {}", index + 1),
        (verdict, Some(_)) => format!("{}, but not above the noise floor", verdict.word()),
        (verdict, None) => verdict.word().to_owned(),
    }
}

fn exhibit(page: &mut Page, one: &Exhibit) {
    let columns: Vec<String> = one.columns.iter().map(|column| escaped(&column.name)).collect();
    let item = |(index, item): (usize, &Item)| {
        let unit = one.columns.get(index).and_then(|column| column.unit).unwrap_or(Unit::Count);
        match item {
            Item::Text(text) => escaped(text),
            Item::Value(value) => escaped(&with_interval(unit, *value, None)),
            Item::Interval(estimate) => shown(unit, estimate),
            Item::Nothing(why) => format!("_{}_", escaped(why)),
        }
    };
    page.table(&columns, one.rows.iter().map(|row| row.iter().enumerate().map(item).collect()).collect());
    page.list(one.notes.iter().map(|note| sentence(note)));
}

fn prices(page: &mut Page, experiment: &Experiment, list: &super::model::PriceList) {
    let Some(metric) = experiment.metrics.first() else { return };
    let mut columns = vec!["piece".to_owned(), "way".to_owned()];
    columns.extend(list.prestates.iter().map(|prestate| escaped(prestate)));
    let rows = list.lines.iter().map(|line| {
        let amounts = line.amounts.iter().map(|amounts| match amounts.first().and_then(Option::as_ref) {
            Some(amount) if amount.suspect => format!("{} suspect", shown(metric.unit, &amount.price)),
            Some(amount) => shown(metric.unit, &amount.price),
            None => "–".to_owned(),
        });
        [escaped(line.piece), escaped(line.way)].into_iter().chain(amounts).collect()
    });
    let rows = rows.collect();
    page.table(&columns, rows);
}

fn failures(page: &mut Page, report: &Report) {
    if !report.failures.is_empty() {
        page.paragraph("### Failures");
        page.list(report.failures.iter().map(|one| {
            let settings: Vec<String> =
                one.settings.iter().filter(|one| !one.is_empty()).map(|one| escaped(one)).collect();
            let settings =
                if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
            format!(
                "**{}** in {}{settings}: {}, {} of {}: {}",
                escaped(&one.label),
                one.experiment,
                one.class,
                one.times,
                counted(one.planned, "sample"),
                escaped(&one.reason)
            )
        }));
    }
    if !report.unavailable.is_empty() {
        page.paragraph("### Found, but not usable");
        page.list(
            report.unavailable.iter().map(|(name, why)| format!("**{}**: {}", escaped(name), escaped(why))),
        );
    }
}

fn warnings(page: &mut Page, report: &Report) {
    let told: Vec<_> =
        report.notices.iter().filter(|one| !matches!(one.kind, "failures" | "skipped")).collect();
    if told.is_empty() {
        return;
    }
    page.paragraph("### Warnings");
    /// Warnings that are told in full.
    const IN_FULL: usize = 10;
    page.list(
        told.iter().take(IN_FULL).map(|one| format!("{} _({})_", sentence(&one.seen), sentence(&one.remedy))),
    );
    if told.len() > IN_FULL {
        page.paragraph(&format!("_and {} more; the JSON report has all._", told.len() - IN_FULL));
    }
}

fn environment(page: &mut Page, report: &Report, look: &Look) {
    page.folded("environment, programs, how it was measured and how to repeat it", |page| {
        let rows = report.machine.iter().map(|(name, fact)| vec![escaped(name), escaped(fact)]).collect();
        page.table(&["fact", "value"].map(str::to_owned), rows);
        let programs = report.programs.iter().map(|one| {
            let hash: String = one.sha256.chars().take(12).collect();
            vec![escaped(&one.role), escaped(&one.path), escaped(&one.version), escaped(&hash)]
        });
        let programs = programs.collect();
        page.table(&["program", "path", "version", "SHA-256"].map(str::to_owned), programs);
        let rounds = report.rounds;
        let verdicts = match report.family {
            0 => "no verdicts".to_owned(),
            many => format!("{} at a level of {:.4} % each", counted(many, "verdict"), report.level * 100.0),
        };
        let tags: Vec<String> =
            report.tags.iter().map(|(key, value)| escaped(&format!("{key}={value}"))).collect();
        page.list(
            [
                format!(
                    "{} of {} after {} to warm up, seed {}",
                    rounds.complete,
                    counted(rounds.planned, "round"),
                    rounds.warmups,
                    rounds.seed
                ),
                format!(
                    "{verdicts}, so that all together hold at 95 %; {}",
                    counted(report.samples, "sample")
                ),
                format!(
                    "one machine ({}), one boot, and one daemon of each engine: n = 1 in each of these",
                    escaped(&report.host)
                ),
                format!("begun by: {}", escaped(&report.command)),
                format!("probe {}", escaped(&report.probe)),
                format!(
                    "every number: dunnage report {} --format json",
                    escaped(&super::text::clean(&look.place))
                ),
            ]
            .into_iter()
            .chain((!tags.is_empty()).then(|| format!("tags: {}", tags.join(" ")))),
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_from_outside_is_shown_and_does_nothing() {
        assert_eq!(escaped("a|b `c` *d* _e_ <b>&amp;"), "a\\|b \\`c\\` \\*d\\* \\_e\\_ &lt;b&gt;&amp;amp;");
        assert_eq!(escaped("@torvalds fixes #1"), "@&#8203;torvalds fixes #&#8203;1");
        assert_eq!(
            escaped("[x](http://e) ![i](y) www.e.org"),
            "[x\\](http&#58;//e) \\![i\\](y) www&#8203;.e.org"
        );
        assert_eq!(escaped("12.3 ms [10.1, 14.0]"), "12.3 ms [10.1, 14.0]");
    }
}
