//! DuckDB and Spark, as they are installed for this.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wait4::Wait4;

use crate::sh;

/// The releases that the questions are tried with.
const DUCKDB: &str = "duckdb==2.0.0";
const PYSPARK: &str = "pyspark==4.2.1";

/// Runs the statements on standard input, prints the rows of those that have any, and how much
/// memory that took.
const DUCKDB_RUN: &str = "\
import duckdb, sys
session = duckdb.connect()
session.execute('SET enable_progress_bar = false')
text = ''.join(line for line in open(sys.argv[1]) if not line.startswith('.'))
for statement in duckdb.extract_statements(text):
    answer = session.execute(statement)
    if statement.type == duckdb.StatementType.SELECT:
        for row in answer.fetchall():
            print(*row, sep='\\t')
";

/// Engine that answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Engine {
    DuckDb,
    Spark,
}

/// An engine that can be asked.
pub(super) struct Installed {
    engine: Engine,
    /// The folder of the Python environment.
    home: PathBuf,
}

/// Answer to a question.
pub(super) struct Asked {
    /// The rows of all statements, with tabs between the values.
    pub(super) lines: Vec<String>,
    pub(super) seconds: f64,
    /// Peak memory in bytes.
    pub(super) peak: u64,
}

impl Installed {
    /// Installs it, if it can be had.
    pub(super) fn find(engine: Engine) -> Result<Option<Installed>> {
        let home = sh::target().join("fleet-engines");
        let installed = Installed { engine, home };
        if engine == Engine::Spark && !sh::has("java") {
            println!("fleet: spark is left out: there is no java");
            return Ok(None);
        }
        let Some(python) = sh::find_tool(&["python3"]) else {
            println!(
                "fleet: {} is left out: there is no python3",
                installed.name()
            );
            return Ok(None);
        };
        let package = match engine {
            Engine::DuckDb => DUCKDB,
            Engine::Spark => PYSPARK,
        };
        if !installed.python().exists() {
            sh::run(
                Command::new(python)
                    .args(["-m", "venv"])
                    .arg(&installed.home),
            )?;
        }
        let mut install = Command::new(installed.python());
        install.args(["-m", "pip", "install", "--quiet", package]);
        if let Err(error) = sh::run(&mut install) {
            println!("fleet: {} is left out: {error:#}", installed.name());
            return Ok(None);
        }
        Ok(Some(installed))
    }

    pub(super) fn name(&self) -> &'static str {
        match self.engine {
            Engine::DuckDb => "duckdb",
            Engine::Spark => "spark",
        }
    }

    fn python(&self) -> PathBuf {
        self.home.join("bin/python3")
    }

    /// Returns the command of one of Spark's programs.
    pub(super) fn spark(&self, program: &str) -> Result<Command> {
        let find = "import pyspark; print(pyspark.__path__[0])";
        let home = sh::stdout(Command::new(self.python()).args(["-c", find]))?;
        let home = PathBuf::from(String::from_utf8(home)?.trim_end());
        let mut command = Command::new(home.join("bin").join(program));
        command
            .env("SPARK_HOME", &home)
            .env("PYSPARK_PYTHON", self.python())
            .args(["--conf", "spark.ui.enabled=false"])
            .args(["--conf", "spark.sql.shuffle.partitions=8"])
            .args(["--conf", "spark.log.level=ERROR"]);
        Ok(command)
    }

    /// Runs the statements in one session.
    pub(super) fn ask(&self, sql: &str) -> Result<Asked> {
        let file = self.home.join("question.sql");
        std::fs::write(&file, sql).with_context(|| file.display().to_string())?;
        let mut command = match self.engine {
            Engine::DuckDb => {
                let mut command = Command::new(self.python());
                command.args(["-c", DUCKDB_RUN]).arg(&file);
                command
            }
            Engine::Spark => {
                let mut command = self.spark("spark-sql")?;
                command
                    .args(["--master", "local[2]", "--driver-memory", "8g"])
                    .arg("-f")
                    .arg(&file)
                    .current_dir(&self.home);
                command
            }
        };
        measured(&mut command, &self.home)
    }
}

fn measured(command: &mut Command, dir: &Path) -> Result<Asked> {
    let (said, wrong) = (dir.join("answer"), dir.join("answer.err"));
    let create =
        |path: &Path| std::fs::File::create(path).with_context(|| path.display().to_string());
    command
        .stdin(Stdio::null())
        .stdout(create(&said)?)
        .stderr(create(&wrong)?);
    let begun = Instant::now();
    let mut child = command.spawn().context("starting the engine")?;
    let used = child.wait4().context("waiting for the engine")?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = std::fs::read_to_string(&said)?;
    let errors = std::fs::read_to_string(&wrong).unwrap_or_default();
    ensure!(used.status.success(), "the engine failed: {errors}");
    Ok(Asked {
        lines: text.lines().map(str::to_owned).collect(),
        seconds,
        peak: used.rusage.maxrss,
    })
}
