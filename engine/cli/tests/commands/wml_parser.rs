//! The parser and the compiler on arbitrary text: they do not panic, and report the position of each error.

use std::fmt::Write;

use fslab_filebench::compile::{Context, compile};
use fslab_filebench::diagnostic::{Diagnostics, Source};
use fslab_filebench::personalities;
use proptest::prelude::*;

fn source(text: &str) -> Source {
    Source { name: "x.f".into(), text: text.into() }
}

/// Compile the text. If that fails, there must be errors, and the line of each must exist.
fn try_compile(text: &str) {
    let context = Context { directory: "/mnt".into(), ..Context::default() };
    let result: Result<_, Diagnostics> = compile(source(text), context);
    if let Err(mistakes) = result {
        assert!(!mistakes.is_empty());
        assert!(!mistakes.to_string().is_empty());
        for one in &mistakes.found {
            let lines = mistakes.sources[one.span.source].text.matches('\n').count() + 1;
            assert!(one.span.line <= lines, "{one:?}");
        }
    }
}

const WORDS: [&str; 64] = [
    "set",
    "define",
    "file",
    "fileset",
    "process",
    "thread",
    "flowop",
    "randvar",
    "cvar",
    "run",
    "psrun",
    "sleep",
    "echo",
    "usage",
    "system",
    "eventgen",
    "create",
    "files",
    "processes",
    "stats",
    "clear",
    "snap",
    "foreach",
    "in",
    "load",
    "varmail",
    "enable",
    "lathist",
    "mode",
    "quit",
    "firstdone",
    "name",
    "path",
    "size",
    "entries",
    "dirwidth",
    "prealloc",
    "iosize",
    "iters",
    "value",
    "target",
    "fd",
    "random",
    "read",
    "write",
    "createfile",
    "closefile",
    "semblock",
    "sempost",
    "$a",
    "$b",
    "$x.mean",
    "${date}",
    "\"text $a\"",
    "/tmp",
    "5",
    "10k",
    "-3",
    "1.5",
    "type=gamma",
    "instances",
    "memsize",
    "randtable",
    "indexed",
];

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => proptest::sample::select(WORDS.to_vec()).prop_map(str::to_owned),
        4 => proptest::sample::select(vec!["=", ",", "{", "}", "(", ")", "\n", "+", "*", "/", "-", "%", "{{", "}}"])
            .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC*") {
        try_compile(&text);
    }

    #[test]
    fn any_bytes_that_are_text_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        try_compile(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_of_the_language_are_read_without_a_panic(tokens in proptest::collection::vec(token(), 0..120)) {
        try_compile(&tokens.join(" "));
    }

    #[test]
    fn a_personality_with_a_hole_is_read_without_a_panic(
        number in 0..personalities::ALL.len(), start in 0.0..1.0_f64, length in 0..40_usize, put in "\\PC{0,6}"
    ) {
        let text = personalities::ALL[number].text;
        let start = (0..=text.len()).rev().find(|&at| {
            text.is_char_boundary(at) && at as f64 <= start * text.len() as f64
        }).unwrap();
        let end = (start..=text.len()).rev().find(|&at| text.is_char_boundary(at) && at <= start + length).unwrap();
        try_compile(&format!("{}{put}{}", &text[..start], &text[end..]));
    }
}

#[test]
fn deep_nesting_is_refused() {
    let parentheses = format!("set $a={}1{}", "(".repeat(5000), ")".repeat(5000));
    try_compile(&parentheses);
    let loops = format!("{}run 1{}", "foreach $i in 1 {\n".repeat(5000), "\n}".repeat(5000));
    try_compile(&loops);
}

#[test]
fn loops_in_loops_do_not_explode() {
    let values: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let head = values.join(",");
    let text = format!(
        "foreach $i in {head} {{\nforeach $j in {head} {{\nforeach $k in {head} {{\necho \"$i\"\n}}\n}}\n}}\n"
    );
    try_compile(&text);
}

#[test]
fn composites_in_composites_do_not_explode() {
    let mut text = "define flowop name=f0 { flowop hog name=h,value=1 }\n".to_owned();
    for level in 1..20 {
        let inner = format!("flowop f{} name=a\nflowop f{} name=b\n", level - 1, level - 1);
        let _ = writeln!(text, "define flowop name=f{level} {{ {inner}{inner}{inner} }}");
    }
    text += "define process name=p { thread name=t { flowop f19 name=x } }\nrun 1\n";
    let context = Context { directory: "/mnt".into(), ..Context::default() };
    let mistakes = compile(source(&text), context).unwrap_err();
    assert!(mistakes.to_string().contains("more than 20000 flowops"), "{mistakes}");
}

#[test]
fn a_composite_that_contains_itself_is_refused() {
    let text = "define flowop name=a { flowop a name=x }\ndefine process name=p { thread name=t { flowop a name=y } }\nrun 1\n";
    let context = Context { directory: "/mnt".into(), ..Context::default() };
    let mistakes = compile(source(text), context).unwrap_err();
    assert!(mistakes.to_string().contains("contains itself"), "{mistakes}");
}
