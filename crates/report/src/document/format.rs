//! The formats of every verb, each with its renderer.

use serde::Serialize;

use super::{Document, Extent, Findings, Look, html, json, markdown, terminal};

/// The findings in the format with this name; none if they have no such format.
pub fn shown<F: Findings>(findings: &F, format: &str, look: &Look) -> Option<String> {
    let common = FORMATS.iter().find(|one| one.name == format);
    common.map(|one| one.render(findings, look)).or_else(|| findings.further(format))
}

/// A table for other programs, quoted as in RFC 4180: the column names, separated by commas, and the rows.
pub fn csv<R: Serialize>(head: &str, rows: impl IntoIterator<Item = R>) -> Option<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head.split(',')).ok()?;
    rows.into_iter().try_for_each(|row| writer.serialize(row)).ok()?;
    String::from_utf8(writer.into_inner().ok()?).ok()
}

/// A format that every verb has.
pub struct Format {
    /// Its name after `--format`.
    pub name: &'static str,
    /// One line of description.
    pub description: &'static str,
    /// Renders the document; none if the format is the findings themselves.
    render: Option<fn(&Document, &Look) -> String>,
    /// How it uses the brief answer.
    brief: Brief,
}

/// How a format uses the brief answer.
#[derive(Clone, Copy)]
enum Brief {
    /// It shows nothing else, unless the full document is requested.
    Alone,
    /// It begins with it.
    First,
    /// It has its own first screen.
    Unused,
}

/// The formats of every verb, the one for people first.
pub static FORMATS: [Format; 4] = [
    Format {
        name: "terminal",
        description: "text for a terminal",
        render: Some(terminal::render),
        brief: Brief::Alone,
    },
    Format {
        name: "html",
        description: "one page for a browser: the answer first, then everything else; one file, no network",
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
        description: "all findings with their numbers, for other programs",
        render: None,
        brief: Brief::Unused,
    },
];

impl Format {
    /// The findings in this format.
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
