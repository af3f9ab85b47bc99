//! The list of formats that every verb has, each with its renderer.

use super::{Document, Findings, Look, html, json, markdown, terminal};

/// What was found, in the format with this name; none where there is no such format of it.
pub fn shown<F: Findings>(findings: &F, format: &str, look: &Look) -> Option<String> {
    let common = FORMATS.iter().find(|one| one.name == format);
    common.map(|one| one.render(findings, look)).or_else(|| findings.further(format))
}

/// A format in which every verb can show what it found.
pub struct Format {
    /// Its name after `--format`.
    pub name: &'static str,
    /// What it is, in a line.
    pub description: &'static str,
    /// How it is made.
    render: Render,
}

enum Render {
    /// From the document.
    Document(fn(&Document, &Look) -> String),
    /// From the findings themselves.
    Data,
}

/// Every format that all verbs have, the one for people first.
pub static FORMATS: [Format; 4] = [
    Format {
        name: "terminal",
        description: "what a person reads at a terminal",
        render: Render::Document(terminal::render),
    },
    Format {
        name: "html",
        description: "one page for a browser: the answer in a screen, then everything behind it; one file, no network",
        render: Render::Document(html::render),
    },
    Format {
        name: "md",
        description: "for an issue, a wiki or a comment, in GitHub's Markdown",
        render: Render::Document(markdown::render),
    },
    Format {
        name: "json",
        description: "everything that was found, with its numbers, for other programs",
        render: Render::Data,
    },
];

impl Format {
    /// What was found, in this format.
    pub fn render<F: Findings>(&self, findings: &F, look: &Look) -> String {
        match self.render {
            Render::Document(render) => render(&findings.document(look), look),
            Render::Data => json::render(findings),
        }
    }
}
