//! The report in GitHub's Markdown.

use dunnage::document::markdown::LONGEST;
use dunnage::record::Recorded;
use dunnage::reference::{self, beside};
use dunnage::report::{Look, Report};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::report::factors::factorial;
use crate::report::scripted::{cells_of, crash, fail, full_ladder, plan, run};
use crate::report::{compare, rendered, report};

fn shown(report: &Report) -> String {
    rendered("md", report, &Look { place: "runs/r-7".into(), ..Look::default() })
}

#[test]
fn it_reads_as_it_did() {
    let report = report(&run(plan(full_ladder()[..5].to_vec(), 20))).with_job(2.0);
    compare("report.md", &shown(&report));
}

/// Texts that try to be more than text.
const EVIL: [&str; 8] = [
    "</details><script>alert(1)</script>",
    "a|b|c `tick` ``two``",
    "@everyone #17 www.evil.org https://evil.org",
    "[click](http://evil.org) ![i](http://evil.org/i.png) [^1] [r]: http://evil.org",
    "<!-- <img src=x onerror=y> &lt;b&gt;",
    "# title\n- item\n> quote\n---",
    "**bold** _em_ ~~gone~~ $x$ \\",
    "<details open><summary>mine",
];

fn hostile() -> Recorded {
    let mut subjects = full_ladder();
    for (subject, evil) in subjects.iter_mut().skip(3).zip(EVIL) {
        subject.label = evil.into();
    }
    let mut run = run(plan(subjects, 20));
    let failing = cells_of(&run, EVIL[0]);
    for (cell, evil) in failing.into_iter().zip(EVIL) {
        for round in 0..12 {
            fail(&mut run, cell, round, crash(evil));
        }
    }
    run.run = EVIL[1].into();
    run.environment.host = EVIL[2].into();
    for (index, evil) in EVIL.into_iter().enumerate() {
        run.environment.machine.insert(format!("kernel{index}"), evil.into());
        run.environment.tags.insert(evil.into(), evil.into());
        run.environment.unavailable.insert(evil.into(), evil.into());
        run.environment.command.push(evil.into());
    }
    run
}

#[test]
fn the_command_line_can_be_pasted() {
    let mut run = run(plan(full_ladder()[..3].to_vec(), 6));
    let words = ["dunnage", "run", "command", "--cmd", "grep --seed < /etc/hosts"];
    run.environment.command = words.map(str::to_owned).into();
    let markdown = shown(&report(&run));
    let line = "dunnage run command --cmd 'grep --seed < /etc/hosts'";
    assert!(markdown.contains(&format!("\n{line}\n{line} --seed 7\n")), "{markdown}");
}

#[test]
fn text_from_outside_is_text() {
    let markdown = shown(&report(&hostile()));
    let mut text = String::new();
    let (mut in_code, mut code) = (false, String::new());
    for event in Parser::new_ext(
        &markdown,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES,
    ) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let own = ["<details>", "</details>", "<summary>", "</summary>"];
                let tags: Vec<&str> =
                    html.split_inclusive('>').map(str::trim).filter(|part| part.contains('<')).collect();
                let is_own = |tag: &&str| own.iter().any(|own| tag.ends_with(own));
                assert!(tags.iter().all(is_own), "{html}");
                assert!(!html.contains("mine") && !html.contains("script"), "{html}");
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                panic!("a link to {dest_url}")
            }
            Event::FootnoteReference(name) => panic!("a footnote {name}"),
            Event::Start(Tag::Strikethrough) => panic!("struck through"),
            // Nothing in a code block is resolved or followed; it is there to be copied unchanged.
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(part) if in_code => code.push_str(&part),
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::End(_) => text.push('\n'),
            _ => {}
        }
    }
    // A mention or an issue number is broken by a zero-width character, and a link by an entity for its
    // colon, so that no pass over the source detects one.
    for mark in ['@', '#'] {
        for (at, _) in text.match_indices(mark) {
            assert!(text[at + 1..].starts_with('\u{200b}'), "{}", &text[at..text.len().min(at + 20)]);
        }
    }
    assert!(!text.contains("www."), "{text}");
    let outside = markdown.split("```").step_by(2).collect::<String>();
    assert!(!outside.contains("://") && !outside.contains("www."), "{markdown}");
    assert!(code.contains(EVIL[0]) && code.contains(EVIL[2]), "{code}");
    let plain = text.replace('\u{200b}', "");
    for evil in [EVIL[0], EVIL[1], EVIL[6], EVIL[7]] {
        assert!(plain.contains(evil), "{evil} is not shown as it is\n{plain}");
    }
    assert!(plain.contains("alert(1)"));
}

#[test]
fn every_row_of_a_table_has_its_cells() {
    let markdown = shown(&report(&hostile()));
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = markdown.lines().collect();
    let mut tables = 0;
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("| ---")) {
        let rows = lines[index + 1..].iter().take_while(|row| !row.is_empty());
        for row in rows.chain([&lines[index - 1]]) {
            assert_eq!(cells(row), cells(line), "{row}");
        }
        tables += 1;
    }
    assert!(tables > 5);
}

#[test]
fn a_comment_has_room_for_it() {
    let mut subjects = full_ladder();
    for index in 0..24 {
        let mut more = subjects[4].clone();
        more.label = format!("a-build-with-a-rather-long-name-{index}");
        subjects.push(more);
    }
    let markdown = shown(&report(&run(plan(subjects, 20))));
    let length = markdown.chars().count();
    assert!(length <= LONGEST, "{length}");
    assert!(markdown.contains("rows of tables left out"), "nothing was cut, so nothing was tested");
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("</details>").count());
    assert!(markdown.contains("AMD EPYC 7763"), "the environment is there");
}

#[test]
fn what_was_asked_for_comes_before_what_has_no_room() {
    let mut subjects = full_ladder();
    for index in 0..24 {
        let mut more = subjects[4].clone();
        more.label = format!("a-build-with-a-rather-long-name-{index}");
        subjects.push(more);
    }
    let mut report = report(&run(plan(subjects, 20)));
    report.references = beside::beside(reference::sources(), &report);
    let markdown = shown(&report);
    assert!(markdown.chars().count() <= LONGEST && markdown.contains("rows of tables left out"));
    let rows = report.references.iter().flat_map(|one| &one.tables).flat_map(|table| &table.rows);
    let printed: Vec<&str> =
        rows.flat_map(|row| &row.published).map(|number| number.printed.as_str()).collect();
    assert!(printed.len() > 10);
    for number in printed {
        assert!(markdown.contains(number), "{number}");
    }
}

#[test]
fn it_says_which_factor_it_is() {
    let report = report(&run(factorial()));
    let markdown = shown(&report);
    let words = markdown.replace('\n', " ");
    assert!(words.contains("**Factors: is it the engine, the runtime or the network?**"), "{markdown}");
    assert!(words.contains("Mainly it is the network: net=bridge takes 5"), "{markdown}");
    let factors = report.experiments[0].factors.as_ref().expect("a factorial");
    let table = markdown.split("Every effect").nth(1).expect("every effect");
    let table = table.split("</details>").next().expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| -"));
    let rows = rows.filter(|line| !line.starts_with("| effect of")).count();
    assert_eq!(rows, factors.effects.len(), "{table}");
    assert!(table.contains("bridge slower") && table.contains("interact"), "{table}");
}
