//! Workloads: files that must not change, errors, warnings and text output.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::wml::{count, files, flowop, refused, script};
use crate::common::{self, engine, listening, run, succeed};
use serde_json::Value;
use tempfile::tempdir;

#[test]
fn directories_are_made_listed_and_removed() {
    let directory = tempdir().unwrap();
    let text = "set mode quit alldone\n\
        define fileset name=d,path=/tmp,size=0,leafdirs=70,dirwidth=7\n\
        define process name=p { thread name=t,instances=2 { flowop makedir name=make,filesetname=d\n\
          flowop listdir name=list,filesetname=d } }\nrun\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!(count(&found, "make"), 70);
    assert!(flowop(&found, "list")["bytes"].as_u64().unwrap() > 0);
    let text = text.replace("dirwidth=7", "dirwidth=7,reuse,prealloc").replace("makedir", "removedir");
    let found = script(directory.path(), &text, &[]);
    assert_eq!(count(&found, "make"), 70);
}

#[test]
fn an_earlier_tree_is_taken_if_told_and_removed_otherwise() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=a,path=/tmp,entries=25,size=5k,dirwidth=3,prealloc,reuse\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a\n\
        flowop finishoncount name=e,value=1 } }\nrun 9\n";
    script(directory.path(), text, &[]);
    let first = files(directory.path());
    let found = script(directory.path(), text, &["--seed", "99"]);
    assert_eq!(found["answer"]["filesets"][0]["reused"], 25);
    let found = script(directory.path(), &text.replace(",reuse", ""), &[]);
    assert_eq!(found["answer"]["filesets"][0]["reused"], 0);
    assert_eq!(files(directory.path()), first);
}

#[test]
fn files_can_be_made_before_and_taken_without_a_look() {
    let directory = tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let common = ["wml", "varmail", "--dir", dir, "--set", "nfiles=50", "--run", "0.1"];
    let found = succeed(&[&common[..], &["--create-only"]].concat());
    assert_eq!(
        (&found["operations"], &found["answer"]["runs"]),
        (&Value::Array(vec![]), &Value::Array(vec![]))
    );
    let made = files(directory.path());
    assert_eq!(made.len(), 40);
    let found = succeed(&[&common[..], &["--reuse", "--seed", "3"]].concat());
    assert_eq!(found["answer"]["filesets"][0]["reused"], 40);
    assert!(found["operations"][0]["count"].as_u64().unwrap() > 0);
}

#[test]
fn other_files_are_left_alone_and_nothing_lies_outside() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("precious"), "x").unwrap();
    fs::create_dir(directory.path().join("a")).unwrap();
    fs::write(directory.path().join("a/precious"), "x").unwrap();
    let text = "define fileset name=a,path=/tmp,entries=5,size=1,dirwidth=3,prealloc\n\
        define process name=p { thread name=t { flowop deletefile name=s,filesetname=a } }\nrun 9\n";
    script(directory.path(), text, &[]);
    let mut left = files(directory.path());
    left.sort();
    assert_eq!(left, [("a/precious".to_owned(), 1), ("precious".to_owned(), 1)]);
    for path in ["/etc", "/tmp/../etc", "../x", "\"a/../../b\""] {
        let text = text.replace("/tmp", path);
        assert!(refused(&text, &[]).contains("path"), "{path}");
    }
    assert!(refused(&text.replace("name=a,", "name=\"../a\","), &[]).contains("cannot be the name"));
    // A path given by a variable is replaced by the work directory, with a warning.
    let text = format!("set $where=/mnt/nowhere\n{}", text.replace("/tmp", "$where"));
    let found = script(directory.path(), &text, &[]);
    assert_eq!(found["warnings"][0]["kind"], "path_replaced");
}

#[test]
fn a_link_in_place_of_the_work_directory_is_not_followed() {
    let directory = tempdir().unwrap();
    let outside = tempdir().unwrap();
    fs::write(outside.path().join("precious"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("fslab-wml")).unwrap();
    let text = "define fileset name=a,path=/tmp,entries=5,size=1,dirwidth=3,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }\nrun 1\n";
    let (found, status) = run(&["wml", "--script", text, "--dir", directory.path().to_str().unwrap()]);
    assert_eq!(status, Some(1), "{found:#}");
    assert_eq!(files(outside.path()), [("precious".to_owned(), 1)]);
}

#[test]
fn commands_of_the_shell_are_refused_unless_allowed() {
    let directory = tempdir().unwrap();
    let text = "set $x=7\nsystem \"echo got $x\"\ndefine file name=a,path=/tmp,size=1,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a\n\
        flowop finishoncount name=e,value=1 } }\necho \"x is $x, \\$x\"\nrun 9\n";
    let message = refused(text, &[]);
    assert!(message.contains(":2:1: 'system' is not allowed"), "{message}");
    let found = script(directory.path(), text, &["--allow-system"]);
    assert_eq!(found["answer"]["messages"], serde_json::json!(["got 7", "x is 7, $x"]));
}

#[test]
fn mistakes_have_places_carets_and_hints() {
    let head = "define fileset name=set,path=/tmp,entries=3,dirwidth=3\n";
    let thread =
        |flowop: &str| format!("{head}define process name=p {{\n thread name=t {{\n  {flowop}\n }}\n}}\n");
    let cases = [
        (thread("flowop reed name=r"), "4:10: unknown flowop 'reed' (did you mean 'read'?)"),
        (thread("flowop read name=r,filename=sett,iosize=1k"), "4:31: there is no file or fileset 'sett'"),
        (thread("flowop read name=r,filename=set"), "4:10: 'read' needs an iosize"),
        (thread("flowop read filename=set,iosize=1"), "4:10: this 'read' needs a name"),
        (thread("flowop read name=r,filename=set,iosize=$nix"), "4:42: $nix is not set"),
        (thread("flowop aiowrite name=r,filename=set,iosize=1"), "4:10: 'aiowrite' needs 'random'"),
        (thread("flowop sempost name=r,target=nobody"), "4:32: there is no semblock 'nobody'"),
        (thread("flowop openfile name=r,filename=set,fd=5000"), "4:42: fd must be below 1024"),
        ("set $a=1/0\n".into(), "1:8: division by zero"),
        ("set $a=cvar(type=cvar-gama)\n".into(), "1:18: unknown type of cvar 'cvar-gama'"),
        ("set $a=randvar(randtable={{50,1,2}})\n".into(), "the percentages add up to 50, not 100"),
        ("define file name=a,size=3\n".into(), "1:1: the fileset 'a' needs a path"),
        ("enable multi master=a,client=b\n".into(), "1:1: several clients are not supported"),
        ("run 5\n".into(), "1:1: there is no process to run"),
        ("load varmial\n".into(), "1:6: unknown personality 'varmial' (did you mean 'varmail'?)"),
        ("define fileset name=a,path=/tmp,prealloc=200\nrun\n".into(), "1:42: prealloc must be a percentage"),
    ];
    for (text, expected) in cases {
        let message = refused(&text, &[]);
        assert!(message.contains(expected), "{text}\n{message}");
        assert!(message.contains('^'), "{message}");
    }
    let several = refused(&thread("flowop reed name=r\n  flowop wrote name=w"), &[]);
    assert!(several.contains("4:10") && several.contains("5:10"), "{several}");
    assert!(refused("set $a=1\nrun\n", &["--set", "b=3"]).contains("the workload has no variable $b"));
}

#[test]
fn a_signal_ends_threads_that_wait_for_each_other_at_once() {
    let directory = tempdir().unwrap();
    let text = "define process name=p { thread name=t,instances=8 { flowop block name=b } }\n\
        define process name=q { thread name=t { flowop delay name=d,value=600\n flowop wakeup name=w,target=b } }\n\
        run 600\n";
    let mut child = engine()
        .args(["wml", "--script", text, "--dir", directory.path().to_str().unwrap(), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    listening(&mut child, libc::SIGTERM);
    let start = Instant::now();
    common::send(&child, libc::SIGTERM);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(143));
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
}

#[test]
fn the_digest_tells_another_text() {
    let directory = tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let known = succeed(&["wml", "statfiles", "--check"]);
    let digest = known["parameters"]["script_blake3"].as_str().unwrap().to_owned();
    succeed(&["wml", "statfiles", "--check", "--digest", &digest]);
    let (found, status) = run(&["wml", "varmail", "--dir", dir, "--digest", &digest]);
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()));
}

#[test]
fn people_see_the_lines_that_they_know() {
    let directory = tempdir().unwrap();
    let arguments = ["wml", "statfiles", "--run", "0.1", "--set", "nfiles=50", "--dir"];
    let output = engine().args(arguments).arg(directory.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line =
        |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("stat ").contains("ops/s") && line("stat ").contains("ms/op ["));
    assert!(line("IO Summary: ").contains("rd/wr"));
}

/// Test the column widths of Filebench, such as five columns for the count: programs that parse its output rely on
/// them.
#[test]
fn the_summary_is_spaced_as_elsewhere() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=a,path=/tmp,entries=7,size=1,dirwidth=3,prealloc\nset mode quit firstdone\n\
        define process name=p { thread name=t { flowop deletefile name=d,filesetname=a } }\nrun\n";
    let output = engine().args(["wml", "--script", text, "--dir"]).arg(directory.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let summary =
        text.lines().find(|line| line.starts_with("IO Summary:")).unwrap_or_else(|| panic!("{text}"));
    assert!(summary.starts_with("IO Summary:     7 ops "), "{summary}");
    assert!(summary.contains(" 0/0 rd/wr   0.0MiB/s "), "{summary}");
}

/// Test that operations count even if the threads finish before the main thread checks them for the first time.
#[test]
fn what_threads_do_at_once_counts() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=a,path=/tmp,entries=300,size=1k,dirwidth=50\nset mode quit firstdone\n\
        define process name=p { thread name=t,memsize=4m,instances=24 {\n\
          flowop createfile name=c,filesetname=a,fd=1\n flowop closefile name=x,fd=1 } }\nrun\n";
    for _ in 0..10 {
        assert_eq!(count(&script(directory.path(), text, &[]), "c"), 300);
    }
}

#[test]
fn snapshots_and_periods_are_told_apart() {
    let directory = tempdir().unwrap();
    let head = "define fileset name=a,path=/tmp,entries=5,size=1,dirwidth=3,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a\n\
          flowop delay name=d,value=0.001 } }\n";
    let text = format!(
        "{head}create files\ncreate processes\nstats clear\nsleep 0.2\nstats snap\nstats clear\nsleep 0.2\n\
         stats dump \"second\"\nshutdown processes\nquit\nfrobnicate\n"
    );
    assert!(refused(&text, &[]).contains("unknown command"));
    let found = script(directory.path(), &text.replace("frobnicate\n", ""), &[]);
    let periods = found["answer"]["periods"].as_array().unwrap();
    assert_eq!(periods.len(), 2);
    assert_eq!((&periods[0]["name"], &periods[1]["name"]), (&Value::Null, &"second".into()));
    // With a negative period, each period is measured separately, and the run covers the rest after the last period.
    let start = Instant::now();
    let found = script(directory.path(), &format!("{head}psrun -0.1 1\n"), &["--run", "0.55"]);
    let whole = start.elapsed().as_secs_f64();
    let seconds = |one: &Value| one["seconds"].as_f64().unwrap();
    let periods: f64 = found["answer"]["periods"].as_array().unwrap().iter().map(seconds).sum();
    let rest = seconds(&found["answer"]["runs"][0]);
    assert!(periods + rest <= whole, "{periods} + {rest} of {whole}");
}

/// Test that CPU time before the statistics were cleared is not in the result. The thread is busy all the time, so that
/// it would have used more CPU time than the run is long.
#[test]
fn cpu_time_of_a_warm_up_is_no_part_of_the_run() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=a,path=/tmp,entries=5,size=1,dirwidth=3,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }\npsrun -1 1\n";
    let found = script(directory.path(), text, &["--run", "1.1"]);
    let operation = &found["operations"][0];
    let seconds = |key: &str| operation[key].as_f64().unwrap();
    let cpu = seconds("cpu_user_seconds") + seconds("cpu_system_seconds");
    assert!(cpu <= seconds("seconds") + 0.05, "{operation:#}");
}

#[test]
fn quit_ends_the_workload_also_within_a_loop() {
    let directory = tempdir().unwrap();
    let mark = directory.path().join("reached");
    let text = format!("foreach $n in 1,2,3 {{ quit }}\nsystem \"touch {}\"\n", mark.display());
    let found = script(directory.path(), &text, &["--allow-system"]);
    assert!(!mark.exists(), "{found:#}");
}

#[test]
fn creating_files_alone_runs_nothing_where_there_are_none() {
    let directory = tempdir().unwrap();
    let mark = directory.path().join("reached");
    let text = format!("system \"touch {}\"\n", mark.display());
    script(directory.path(), &text, &["--create-only", "--allow-system"]);
    assert!(!mark.exists());
    script(directory.path(), &text, &["--allow-system"]);
    assert!(mark.exists(), "otherwise it runs");
}
