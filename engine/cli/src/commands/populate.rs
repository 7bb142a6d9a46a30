//! `fslab-engine populate`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use fslab_engine::input;
use fslab_engine::operations::populate::{Class, Distribution, Parameters, Planted, Spec, run};
use fslab_engine::units::parse_size;

use super::Shown;

/// Make a synthetic tree with a ground-truth manifest
///
/// The same specification gives the same tree, byte for byte, on any machine and with any number of threads.
/// Without --spec, it is the data set of the file-management study (450,000 files of 32 KiB, 50,000 of
/// 4 MiB and 1,000 of 100 MiB on average: some 330 GB); --scale multiplies the numbers of files. The answer is the
/// manifest: what each operation must find in the tree. The defaults of the options apply without --spec.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("how much").required(true).multiple(true).args(["spec", "scale", "classes"])))]
pub(crate) struct Arguments {
    /// JSON file with the specification; other options take precedence
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,

    /// Also write the manifest to this file, which is overwritten
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,

    /// Random seed of the tree; default: 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Factor for the number of files of each class; default: 1
    #[arg(long, value_name = "FACTOR")]
    scale: Option<f64>,

    /// Size class: number of files, mean size, and distribution: lognormal (default), uniform or fixed; can be
    /// repeated
    #[arg(long = "class", value_name = "NAME:FILES:SIZE[:DISTRIBUTION]", value_parser = parse_class)]
    classes: Vec<Class>,

    /// Text to insert into a share of the files (0 to 1), HITS times in each (default: 1); can be repeated,
    /// and replaces the default, fslab-needle:0.05:3
    #[arg(long = "plant", value_name = "TEXT:SHARE[:HITS]", value_parser = parse_planted)]
    patterns: Vec<Planted>,

    /// Number of files in a directory; default: 100
    #[arg(long, value_name = "N")]
    files_per_directory: Option<u64>,

    /// Number of subdirectories in a directory, at least 2; default: 10
    #[arg(long, value_name = "N")]
    fanout: Option<u64>,

    /// Share of the contents that repeats, 0 to 1; default: 0.5
    #[arg(long, value_name = "SHARE")]
    compressibility: Option<f64>,

    /// Share of the files that are exact copies of other files, 0 to 1; default: 0.1
    #[arg(long, value_name = "SHARE")]
    duplicates: Option<f64>,

    /// Maximum age of a file; default: 1500
    #[arg(long, value_name = "DAYS")]
    max_age_days: Option<u64>,

    /// Number of owners of the files, if root creates them; 0: the user who creates them; default: 0
    #[arg(long, value_name = "N")]
    owners: Option<u32>,

    #[command(flatten)]
    parameters: Parameters,
}

fn parse_class(text: &str) -> Result<Class, String> {
    let mut parts = text.split(':');
    let (Some(name), Some(files), Some(size)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("expected NAME:FILES:SIZE".to_owned());
    };
    let distribution = match parts.next() {
        None | Some("lognormal") => Distribution::Lognormal,
        Some("fixed") => Distribution::Fixed,
        Some("uniform") => Distribution::Uniform,
        Some(other) => return Err(format!("unknown distribution '{other}'")),
    };
    if parts.next().is_some() {
        return Err("expected NAME:FILES:SIZE[:DISTRIBUTION]".to_owned());
    }
    let files = files.parse().map_err(|_| format!("'{files}' is not a number of files"))?;
    Ok(Class { name: name.to_owned(), files, mean_bytes: parse_size(size)?, distribution })
}

fn parse_planted(text: &str) -> Result<Planted, String> {
    let mut parts = text.split(':');
    let (Some(pattern), Some(share)) = (parts.next(), parts.next()) else {
        return Err("expected TEXT:SHARE".to_owned());
    };
    let share = share.parse().map_err(|_| format!("'{share}' is not a share from 0 to 1"))?;
    let hits = parts.next().unwrap_or("1");
    if parts.next().is_some() {
        return Err("expected TEXT:SHARE[:HITS], and no colon in TEXT".to_owned());
    }
    let hits = hits.parse().map_err(|_| format!("'{hits}' is not a number of hits"))?;
    Ok(Planted { text: pattern.to_owned(), share, hits })
}

/// Write a new file over the name of an old one. Nothing is written to the old one: in a directory that others can
/// write to, it could be a link to any file.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!("it is a symbolic link, or not a regular file");
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = path.with_file_name(name);
    let mut file = fs::File::create_new(&unfinished)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&unfinished, path));
    written.or_else(|error| {
        let _ = fs::remove_file(&unfinished); // the first error is the one that matters
        bail!(error)
    })
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<Shown> {
        let it = &Parameters { spec: self.spec()?, ..self.parameters.clone() };
        let outcome = run(it)?;
        if let (Some(path), Some(manifest)) = (&self.manifest, &outcome.answer) {
            let text = serde_json::to_string_pretty(manifest)? + "\n";
            replace(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Shown::new("populate", it.measured.threads, it, outcome)
    }

    fn spec(&self) -> anyhow::Result<Spec> {
        let mut spec = match &self.spec {
            None => Spec::default(),
            Some(path) => {
                let text = input::read(path)?;
                serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))?
            }
        };
        if !self.classes.is_empty() {
            spec.classes.clone_from(&self.classes);
        }
        if !self.patterns.is_empty() {
            spec.patterns.clone_from(&self.patterns);
        }
        spec.seed = self.seed.unwrap_or(spec.seed);
        spec.scale = self.scale.unwrap_or(spec.scale);
        spec.files_per_directory = self.files_per_directory.unwrap_or(spec.files_per_directory);
        spec.fanout = self.fanout.unwrap_or(spec.fanout);
        spec.compressibility = self.compressibility.unwrap_or(spec.compressibility);
        spec.duplicates = self.duplicates.unwrap_or(spec.duplicates);
        spec.maximum_age_days = self.max_age_days.unwrap_or(spec.maximum_age_days);
        spec.owners = self.owners.unwrap_or(spec.owners);
        Ok(spec)
    }
}
