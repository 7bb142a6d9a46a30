//! `fslab-engine wml`.

mod text;

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::{ArgGroup, Args};
use fslab_engine::document::Outcome;
use fslab_engine::{Error, input, plain};
use fslab_filebench::{Parameters, check, digest, personalities, run};
use serde_json::json;

use super::Shown;

/// Run a workload file of Filebench, or a built-in workload
///
/// The files of the workload are in the directory fslab-wml inside --dir, whatever paths it names.
/// docs/filebench.md lists differences from Filebench. A workload without a run command runs for 60
/// seconds.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["workload", "script", "list"])))]
pub(crate) struct Arguments {
    /// File in the Workload Model Language, or name of a built-in workload
    #[arg(value_name = "FILE.f|NAME")]
    workload: Option<String>,

    /// Text of a workload, instead of a file
    #[arg(long, value_name = "TEXT")]
    script: Option<String>,

    /// Existing directory for its files; required unless --check or --list is given
    #[arg(long, value_name = "DIR", required_unless_present_any = ["list", "check"])]
    dir: Option<PathBuf>,

    #[command(flatten)]
    parameters: Parameters,

    /// Fail unless the text of the workload has this BLAKE3 digest
    // Listed after --seed.
    #[arg(long, value_name = "HEX", display_order = 5)]
    digest: Option<String>,

    /// Print all errors in the workload, or what it would do; run nothing
    #[arg(long)]
    check: bool,

    /// List the built-in workloads, with their variables
    #[arg(long)]
    list: bool,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        if self.list {
            return list();
        }
        let (script, text) = self.text()?;
        self.check_digest(&text)?;
        let parameters = Parameters {
            script,
            text,
            directory: self.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
            ..self.parameters.clone()
        };
        if self.check {
            let outcome = check(&parameters)?;
            let shown = text::checked(&outcome);
            return Ok(Shown::new("wml", 0, &parameters, outcome)?.with_text(shown));
        }
        let (threads, outcome) = run(&parameters, &|said| eprintln!("{}", plain::text(said)))?;
        let shown = text::measured(&outcome);
        Ok(Shown::new("wml", threads, &parameters, outcome)?.with_text(shown))
    }

    /// Return the name and the text of the workload. A file takes precedence over a built-in workload of the same name.
    fn text(&self) -> anyhow::Result<(String, String)> {
        if let Some(text) = &self.script {
            return Ok(("--script".to_owned(), text.clone()));
        }
        let workload = self.workload.as_deref().unwrap_or_default();
        let path = Path::new(workload);
        if !path.is_file() && !workload.contains('/') {
            if let Some(known) = personalities::find(workload) {
                return Ok((workload.to_owned(), known.text.to_owned()));
            }
            if path.extension().is_none() {
                let known: Vec<&str> = personalities::ALL.iter().map(|one| one.name).collect();
                bail!("unknown workload '{workload}'; known: {}", known.join(", "));
            }
        }
        Ok((workload.to_owned(), input::read(path)?))
    }

    fn check_digest(&self, text: &str) -> anyhow::Result<()> {
        let Some(wanted) = &self.digest else { return Ok(()) };
        let found = digest(text);
        if found.eq_ignore_ascii_case(wanted) {
            return Ok(());
        }
        Err(anyhow!(Error::Invalid(format!("the workload has changed: its digest is {found}, not {wanted}"))))
    }
}

/// List the built-in workloads with their summaries and variables.
fn list() -> anyhow::Result<Shown> {
    let mut entries = Vec::new();
    for one in personalities::ALL {
        let parameters = Parameters {
            script: one.name.to_owned(),
            text: one.text.to_owned(),
            directory: PathBuf::from("."),
            ..Parameters::default()
        };
        let answer = check(&parameters)?.answer.unwrap_or_default();
        entries.push(json!({"name": one.name, "summary": one.summary(), "variables": answer["variables"]}));
    }
    let outcome = Outcome { answer: Some(json!({"workloads": entries})), ..Outcome::default() };
    let shown = text::listed(&outcome);
    Ok(Shown::new("wml", 0, &json!({}), outcome)?.with_text(shown))
}
