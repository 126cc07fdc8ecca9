//! The files of a bench run: the record as JSON, its Markdown and charts; README's chart and the
//! guide's table. Written after every row, so that nothing measured is lost.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::record::BenchRecord;
use super::{chart, markdown, readme};
use crate::sh;

/// Folder of a run's record.
pub(crate) struct Place {
    folder: PathBuf,
    /// True if README's chart and the guide's table are this run's.
    pub(crate) readme: bool,
}

impl Place {
    /// Returns the place in `folder`, or in the repository's own.
    pub(crate) fn new(folder: Option<String>, readme: bool) -> Result<Place> {
        let folder = folder.map_or_else(|| sh::root().join("benches/record"), PathBuf::from);
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Place { folder, readme })
    }

    pub(crate) fn json(&self, record: &BenchRecord) -> PathBuf {
        self.folder.join(format!("{}.json", record.stem()))
    }

    /// Writes the figures and the Markdown.
    pub(crate) fn save(&self, record: &BenchRecord) -> Result<()> {
        let mut json = serde_json::to_string(record)?;
        // A row a line, so that two runs can be compared.
        for (from, to) in [
            ("{\"area\"", "\n{\"area\""),
            ("],\"not_run\"", "],\n\"not_run\""),
        ] {
            json = json.replace(from, to);
        }
        replace(&self.json(record), &format!("{}\n", json.trim_start()))?;
        let text = markdown::text(record);
        replace(&self.folder.join(format!("{}.md", record.stem())), &text)
    }

    /// Writes the charts too, and README's and the guide's figures where they are this run's.
    pub(crate) fn finish(&self, record: &BenchRecord) -> Result<()> {
        for (name, svg) in chart::all(record) {
            let path = self.folder.join(format!("{}-{name}.svg", record.stem()));
            replace(&path, &svg)?;
        }
        self.save(record)?;
        if self.readme {
            let update = |page: &str, with: fn(&str, &BenchRecord) -> Result<String>| {
                let path = sh::root().join(page);
                let text = std::fs::read_to_string(&path).context(page.to_owned())?;
                replace(&path, &with(&text, record)?)
            };
            update("README.md", readme::with_chart)?;
            update(readme::PAGE, readme::with_table)?;
        }
        Ok(())
    }
}

/// Writes the text under a temporary name and renames it: a reader sees the old text or the new
/// one.
fn replace(path: &Path, text: &str) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .with_context(|| path.display().to_string())
}
