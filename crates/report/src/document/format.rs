//! The list of formats that every verb has, each with its renderer.

use serde::Serialize;

use super::{Document, Extent, Findings, Look, html, json, markdown, terminal};

/// What was found, in the format with this name; none where there is no such format of it.
pub fn shown<F: Findings>(findings: &F, format: &str, look: &Look) -> Option<String> {
    let common = FORMATS.iter().find(|one| one.name == format);
    common.map(|one| one.render(findings, look)).or_else(|| findings.further(format))
}

/// A table for other programs, as RFC 4180 quotes it: its head, whose columns have commas between them, and its rows.
pub fn csv<R: Serialize>(head: &str, rows: impl IntoIterator<Item = R>) -> Option<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head.split(',')).ok()?;
    rows.into_iter().try_for_each(|row| writer.serialize(row)).ok()?;
    String::from_utf8(writer.into_inner().ok()?).ok()
}

/// A format in which every verb can show what it found.
pub struct Format {
    /// Its name after `--format`.
    pub name: &'static str,
    /// What it is, in a line.
    pub description: &'static str,
    /// What makes it of the document; none where it is the findings themselves.
    render: Option<fn(&Document, &Look) -> String>,
    /// What it does with the answer alone.
    brief: Brief,
}

/// What a format does with the answer alone.
#[derive(Clone, Copy)]
enum Brief {
    /// It shows that, unless everything is asked for.
    Alone,
    /// It begins with it.
    First,
    /// It has its own first screen.
    Unused,
}

/// Every format that all verbs have, the one for people first.
pub static FORMATS: [Format; 4] = [
    Format {
        name: "terminal",
        description: "what a person reads at a terminal",
        render: Some(terminal::render),
        brief: Brief::Alone,
    },
    Format {
        name: "html",
        description: "one page for a browser: the answer in a screen, then everything behind it; one file, no network",
        render: Some(html::render),
        brief: Brief::Unused,
    },
    Format {
        name: "md",
        description: "for an issue, a wiki or a comment, in GitHub's Markdown",
        render: Some(markdown::render),
        brief: Brief::First,
    },
    Format {
        name: "json",
        description: "everything that was found, with its numbers, for other programs",
        render: None,
        brief: Brief::Unused,
    },
];

impl Format {
    /// What was found, in this format.
    pub fn render<F: Findings>(&self, findings: &F, look: &Look) -> String {
        let Some(render) = self.render else { return json::render(findings) };
        let brief = match self.brief {
            Brief::Alone if look.extent == Extent::Brief => findings.brief(look),
            Brief::First => {
                let all = Look { extent: Extent::Full, ..look.clone() };
                findings.brief(&all).map(|brief| findings.document(look).led_by(brief))
            }
            _ => None,
        };
        render(&brief.unwrap_or_else(|| findings.document(look)), look)
    }
}
