//! Malicious workload files: they are refused with a short message, and create nothing outside the directory.

use std::fs;
use std::process::Command;

use crate::common;
use tempfile::tempdir;

const FILES: &str = "define fileset name=a,path=/tmp,entries=5,size=1,prealloc\n";
const WORK: &str =
    "define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }\nrun 1\n";

/// Return the error message for a file with this text; panic if it is accepted.
fn refused(text: &str) -> String {
    let directory = tempdir().unwrap();
    let file = directory.path().join("hostile.f");
    fs::write(&file, text).unwrap();
    let (found, status) = common::run(&["wml", file.to_str().unwrap(), "--check"]);
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()), "{found:#}");
    found["error"]["message"].as_str().unwrap().to_owned()
}

/// Return the error message for a file that starts with `head` and continues with a valid workload.
fn of(head: &str) -> String {
    refused(&format!("{head}\n{FILES}{WORK}"))
}

#[test]
fn what_names_itself_is_not_set() {
    for head in
        ["eventgen rate=${rate}", "eventgen rate=${eventgen.rate}+1", "set $x=$x", "set $x=$y\nset $y=$x"]
    {
        let said = of(head);
        assert!(said.contains("is not set"), "{head}: {said}");
    }
}

#[test]
fn nesting_and_long_expressions_have_a_bound() {
    let parentheses = format!("set $x={}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(of(&parentheses).contains("nested too deeply"));
    assert!(of(&"foreach $i in 1,2 { ".repeat(3000)).contains("nested too deeply"));
    for chain in ["+1", "*1", "+(1)", "+1*1"] {
        let said = of(&format!("set $x=1{}", chain.repeat(300_000)));
        assert!(said.contains("more than 1000 operators"), "{chain}: {said}");
    }
    // The bound also holds if each level of parentheses stays within it.
    let level = |inner: String, _| format!("({inner}{})", "+1".repeat(900));
    assert!(
        of(&format!("set $x={}", (0..50).fold("1".to_owned(), level))).contains("more than 1000 operators")
    );
    // The bound applies to each value separately: these are accepted, only $x5 is an error.
    let many = (0..5).map(|n| format!("set $x{n}=1{}", "+1".repeat(900))).collect::<Vec<_>>().join("\n");
    assert!(of(&format!("{many}\nset $y=$x5")).contains("$x5 is not set"));
}

#[test]
fn texts_that_hold_themselves_do_not_fill_the_memory() {
    let doubled = format!("set $a=\"0123456789\"\n{}", "set $a=\"$a$a\"\n".repeat(60));
    let numbers: Vec<String> = (0..9000).map(|number| number.to_string()).collect();
    let grown =
        format!("set $a=x\nforeach $i in {} {{ set $a=\"$a {}\"\n}}", numbers.join(","), "y".repeat(60));
    let wide = format!("set $a={}\nset $b=\"{}\"", "x".repeat(1 << 20), "$a".repeat(1000));
    for head in [doubled, grown, wide] {
        assert!(of(&head).contains("texts add up to more than 64 MiB"));
    }
}

#[test]
fn what_is_defined_has_a_bound() {
    let many = |one: fn(usize) -> String| of(&(0..10_002).map(one).collect::<String>());
    let filesets = many(|n| format!("define fileset name=f{n},path=/tmp\n"));
    let flowops = many(|n| format!("define flowop name=f{n} {{ flowop hog name=h,value=1 }}\n"));
    assert!(filesets.contains("too many definitions") && flowops.contains("too many definitions"));
    let nested = |n: usize| match n {
        0 => "define flowop name=c0 { flowop hog name=h,value=1 }\n".to_owned(),
        n => format!("define flowop name=c{n} {{ flowop c{0} name=x\n flowop c{0} name=y }}\n", n - 1),
    };
    let doubling: String = (0..20).map(nested).collect();
    let said = refused(&format!(
        "{doubling}{FILES}define process name=p {{ thread name=t {{ flowop c19 name=c }} }}\nrun 1\n"
    ));
    assert!(said.contains("more than 20000 flowops"), "{said}");
    let periods = format!("{FILES}{}", WORK.replace("run 1", "psrun 0.0000000001 1"));
    assert!(refused(&periods).contains("more than 10000 periods"));
}

/// Test that the message is short: it contains the first 100 errors, and only the part of a long line around the error.
#[test]
fn a_file_of_mistakes_is_told_in_short() {
    let lines = (0..5000).map(|n| format!("frobnicate{n}")).collect::<Vec<_>>().join("\n");
    for text in ["\0".repeat(1_000_000), lines, format!("set {}=1", "x".repeat(1 << 20))] {
        let said = refused(&text);
        assert!(said.len() < 100_000, "{} bytes", said.len());
    }
}

#[test]
fn numbers_that_overflow_are_no_division_by_zero() {
    assert!(of("set $x=(0-9223372036854775807-1)/(0-1)").contains("too large"));
    assert!(of("set $x=1/0").contains("division by zero"));
    assert!(of("set $x=1.5%0").contains("division by zero"));
}

#[test]
fn a_file_without_an_end_is_no_workload() {
    let directory = tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    for file in ["/dev/zero", "/proc/self/exe"] {
        let (refused, status) = common::run(&["wml", file, "--dir", path]);
        assert_eq!((status, &refused["error"]["kind"]), (Some(1), &"invalid".into()), "{refused:#}");
    }
}

/// Test that nothing is created outside the directory, whatever path or name a file contains, directly or in a
/// variable.
#[test]
fn paths_and_names_stay_below_the_directory() {
    let directory = tempdir().unwrap();
    let below = directory.path().join("below");
    fs::create_dir(&below).unwrap();
    let path = below.to_str().unwrap();
    let hostile =
        ["../x", "/etc", "a/../../b", "..", ".", "//", "./../../x", "/tmp/../etc", "a\nb", "-rf", "~/x"];
    for (part, place) in hostile.iter().flat_map(|part| [(part, "path"), (part, "name"), (part, "variable")])
    {
        let files = match place {
            "path" => FILES.replace("path=/tmp", &format!("path=\"{part}\"")),
            "name" => FILES.replace("name=a", &format!("name=\"{part}\"")),
            _ => format!("set $d=\"{part}\"\n{}", FILES.replace("path=/tmp", "path=\"$d\"")),
        };
        let _ = common::run(&["wml", "--script", &format!("{files}create files\n"), "--dir", path]);
        let outside: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(outside, ["below"], "{place} {part}");
        for made in fs::read_dir(&below).unwrap() {
            assert_eq!(made.unwrap().file_name(), "fslab-wml", "{place} {part}");
        }
    }
}

#[test]
fn a_terminal_gets_no_escapes_from_a_workload() {
    let directory = tempdir().unwrap();
    let name = "\u{1b}]0;title\u{7}\u{9b}2J\u{202e}";
    let script = format!("echo \"{name}\"\n{}{WORK}", FILES.replace("name=a", &format!("name=\"{name}\"")));
    for more in [&["--check"][..], &["--check", "--json"], &[], &["--json"]] {
        let mut command = common::engine();
        command.args(["wml", "--script", &script, "--dir", directory.path().to_str().unwrap()]).args(more);
        let output = command.output().unwrap();
        for said in [output.stdout, output.stderr] {
            let said = String::from_utf8(said).unwrap();
            let obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!said.contains(obeyed), "{more:?}: {said:?}");
        }
    }
}

/// A shell writes names of files into a command line (`fslab-engine walk *`).
#[test]
fn a_terminal_gets_no_escapes_from_a_command_line() {
    let name = "\u{1b}]0;evil\u{7}title\u{9b}2J\u{202e}";
    let wrong = format!("--{name}");
    let disk = || Command::new(env!("CARGO_BIN_EXE_fslab-disk"));
    let engine = [vec![name], vec![&wrong], vec!["delete", name], vec!["small-files", "d", "--files", name]];
    let engine = engine.map(|words| (common::engine(), words));
    let disk = [vec![name], vec![&wrong], vec!["serve", "d", "--size", name]].map(|words| (disk(), words));
    for (mut command, words) in engine.into_iter().chain(disk) {
        let output = command.args(words).output().unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("title"), "{said:?}");
        let obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!said.contains(obeyed), "{said:?}");
    }
}
