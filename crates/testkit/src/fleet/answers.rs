//! Answers to the questions about a fleet, counted from its definition and not from the manifests.

use super::lines::digest;
use super::{Class, Fleet};

/// Known answer to a question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownAnswer {
    /// Its name.
    pub query: &'static str,
    /// Its parameters, `KEY=VALUE`. A pattern of files is below the folder of the fleet.
    pub params: Vec<String>,
    /// Rows, where they are known.
    pub rows: Option<u64>,
    /// The column whose sum is known.
    pub column: &'static str,
    /// That sum.
    pub sum: i128,
}

impl KnownAnswer {
    /// Returns the SQL that gives rows and sum, from the SQL that ends with the question.
    ///
    /// # Panics
    /// If there is but one statement.
    pub fn summing(&self, sql: &str) -> String {
        let text = sql.trim_end().trim_end_matches(';');
        let at = text.rfind(";\n").expect("views come before the question") + 2;
        let (views, question) = text.split_at(at);
        format!(
            "{views}SELECT count(*), coalesce(sum({}), 0) FROM (\n{question}\n) AS answer;\n",
            self.column
        )
    }

    /// True if these lines are the expected output of the SQL: no warnings, and one row of two
    /// values that are separated by a comma or a tab.
    pub fn is(&self, lines: &[String]) -> bool {
        let [line] = lines else {
            return false;
        };
        let Some((rows, sum)) = line.split_once([',', '\t']) else {
            return false;
        };
        let is_known = self.rows.is_none_or(|known| rows.parse() == Ok(known));
        is_known && sum.parse() == Ok(self.sum)
    }
}

impl Fleet {
    /// Returns the correct answer to each question. `dir` is the directory of the manifests.
    pub fn answers(&self, dir: &str) -> Vec<KnownAnswer> {
        let answer = |query, rows, column, sum| KnownAnswer {
            query,
            params: Vec::new(),
            rows: Some(rows),
            column,
            sum,
        };
        let (machines, each) = (i128::from(self.machines), self.each());
        let bytes = |class| {
            self.of(class)
                .map(|file| i128::from(self.size(file)))
                .sum::<i128>()
        };
        let all = |class| machines * bytes(class);
        let alone = [
            Class::Decayed,
            Class::Moved,
            Class::Copied,
            Class::Linked,
            Class::New,
            Class::Single,
        ];
        let alone_bytes: i128 = alone.into_iter().map(all).sum();
        let alone_files = self.machines
            * alone
                .into_iter()
                .map(|c| self.of(c).count() as u64)
                .sum::<u64>();
        let shared: i128 = (0..self.files)
            .map(|file| i128::from(self.size(file)))
            .sum();
        let pairs = machines / 2 * bytes(Class::Pair);
        let with = |params: &[String], answer: KnownAnswer| KnownAnswer {
            params: params.to_vec(),
            ..answer
        };
        // A copy is as large as what it is of; their directories are not counted.
        let copies = all(Class::Copied);
        vec![
            answer(
                "duplicates",
                each + each * self.machines / 2,
                "bytes",
                (machines - 1) * bytes(Class::Everywhere) + pairs,
            ),
            answer(
                "unprotected",
                alone_files + self.files,
                "size",
                alone_bytes + shared,
            ),
            with(
                &[format!("backups={dir}/client*.jsonl")],
                answer(
                    "unprotected",
                    alone_files + each + each * self.machines / 2,
                    "size",
                    alone_bytes + bytes(Class::Everywhere) + pairs,
                ),
            ),
            answer(
                "lost",
                2 * each * self.machines,
                "size",
                all(Class::Lost) + all(Class::Decayed),
            ),
            answer("decayed", each * self.machines, "size", all(Class::Decayed)),
            answer("moved", each * self.machines, "size", all(Class::Moved)),
            KnownAnswer {
                rows: None,
                ..answer("waste", 0, "bytes", copies)
            },
            with(
                &["from=2026-01-15".to_owned(), "to=2026-02-15".to_owned()],
                answer(
                    "growth",
                    self.machines,
                    "bytes",
                    all(Class::New) - all(Class::Lost),
                ),
            ),
            with(
                &[format!("digest={}", digest(2 << 60 | each))],
                answer("find", 4, "size", 4 * i128::from(self.size(each))),
            ),
            with(
                &["path=0/1-nobody".to_owned()],
                answer("find", 0, "size", 0),
            ),
        ]
    }
}
