//! Workloads: flowops, variables, synchronization and the files they create.

use std::fs;
use std::path::Path;

use crate::common::wml::{count, files, flowop, script};
use crate::common::{assert_same_shape, golden, succeed};
use tempfile::tempdir;

const PERSONALITIES: [&str; 21] = [
    "copyfiles",
    "createfiles",
    "deletefiles",
    "fileserver",
    "listdirs",
    "makedirs",
    "mongo",
    "oltp",
    "openfiles",
    "randomread",
    "randomrw",
    "randomwrite",
    "removedirs",
    "singlestreamread",
    "singlestreamwrite",
    "statfiles",
    "varmail",
    "videoserver",
    "webproxy",
    "webserver",
    "writefsync",
];

#[test]
fn every_personality_is_listed_and_works() {
    let listed = succeed(&["wml", "--list"]);
    let workloads = listed["answer"]["workloads"].as_array().unwrap();
    let names: Vec<&str> = workloads.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, PERSONALITIES);
    for one in workloads {
        let directory = tempdir().unwrap();
        let name = one["name"].as_str().unwrap();
        let mut arguments = vec!["wml", name, "--dir", directory.path().to_str().unwrap(), "--run", "0.2"];
        for (variable, value) in [("nfiles", "60"), ("ndirs", "60"), ("nthreads", "2"), ("nshadows", "4")] {
            if one["variables"][variable].is_string() {
                arguments.extend(match variable {
                    "nfiles" => ["--set", "nfiles=60"],
                    "ndirs" => ["--set", "ndirs=60"],
                    "nthreads" => ["--set", "nthreads=2"],
                    _ => ["--set", "nshadows=4"],
                });
                let _ = value;
            }
        }
        let sized = one["variables"]["filesize"].as_str().is_some_and(|size| size.parse::<u64>().is_ok());
        if sized {
            arguments.extend(["--set", "filesize=1m"]);
        }
        let found = succeed(&arguments);
        let summary = &found["answer"]["runs"][0]["summary"];
        assert!(summary["count"].as_u64().unwrap() > 0, "{name}: {found:#}");
        assert_eq!(found["operations"][0]["count"], summary["count"], "{name}");
        assert!(found["parameters"]["script_blake3"].as_str().unwrap().len() == 64);
    }
}

#[test]
fn the_golden_document() {
    let directory = tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    let found =
        succeed(&["wml", "varmail", "--dir", root, "--run", "0.3", "--set", "nfiles=200", "--syncfs"]);
    if std::env::var_os("FSLAB_UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&found).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/wml.json");
        fs::write(path, text.replace(root, "/mnt")).unwrap();
    }
    assert_same_shape(&found, &golden("wml.json"), "wml.json");
}

#[test]
fn a_count_ends_the_run_and_everything_is_counted() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=a,path=/tmp,entries=50,size=10k,dirwidth=5,prealloc=100\n\
        define process name=p { thread name=t {\n\
          flowop openfile name=open,filesetname=a,fd=1\n\
          flowop readwholefile name=read,fd=1,iosize=4k\n\
          flowop statfile name=stat,fd=1\n\
          flowop closefile name=close,fd=1\n\
          flowop finishoncount name=end,value=400 } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    // A round has four operations, so 100 rounds have 400.
    assert_eq!(["open", "read", "stat", "close"].map(|name| count(&found, name)), [100; 4]);
    assert_eq!(flowop(&found, "read")["bytes"], 100 * 10_240);
    assert_eq!(found["operations"][0]["count"], 400);
    assert_eq!(found["answer"]["runs"][0]["summary"]["bytes_read"], 100 * 10_240);
    assert_eq!(found["answer"]["filesets"][0]["files"], 50);
    assert_eq!(found["answer"]["runs"][0]["ended"], "done");
    let made = files(directory.path());
    assert_eq!(made.len(), 50);
    assert!(made.iter().all(|(path, length)| path.starts_with("fslab-wml/a/") && *length == 10_240));
}

#[test]
fn part_of_the_files_exists_and_the_rest_is_created_until_none_is_left() {
    let directory = tempdir().unwrap();
    let text = "set mode quit alldone\nset $n=40\n\
        define fileset name=a,path=/tmp,entries=$n * 2,size=3k,dirwidth=10,prealloc=25\n\
        define process name=p { thread name=t,instances=3 {\n\
          flowop createfile name=create,filesetname=a,fd=1\n\
          flowop writewholefile name=write,fd=1,iosize=1k\n\
          flowop closefile name=close,fd=1 } }\nrun\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!(found["answer"]["filesets"][0]["files"], 20);
    assert_eq!((count(&found, "create"), count(&found, "close")), (60, 60));
    assert_eq!(flowop(&found, "write")["bytes"], 60 * 3072);
    assert_eq!(files(directory.path()).len(), 80);
    assert!(found["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn files_that_run_out_end_a_timed_run_with_a_warning() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=a,path=/tmp,entries=30,size=0,dirwidth=10,prealloc\n\
        define process name=p { thread name=t { flowop deletefile name=gone,filesetname=a } }\nrun 30\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!(count(&found, "gone"), 30);
    assert_eq!(found["warnings"][0]["kind"], "out_of_files");
    assert_eq!(found["answer"]["runs"][0]["ended"], "out_of_files");
    assert!(files(directory.path()).is_empty());
}

#[test]
fn composite_flowops_pass_their_variables_on() {
    let directory = tempdir().unwrap();
    let text = "define fileset name=one,path=/tmp,entries=5,size=2k,dirwidth=10,prealloc\n\
        define fileset name=two,path=/tmp,entries=5,size=4k,dirwidth=10,prealloc\n\
        define flowop name=look,$set,$times=2 {\n\
          flowop openfile name=open,filesetname=$set,fd=1\n\
          flowop readwholefile name=read,fd=1,iters=$times\n\
          flowop closefile name=close,fd=1 }\n\
        define flowop name=both,$other { flowop look name=inner,$set=$other,$times=3 }\n\
        define process name=p { thread name=t {\n\
          flowop look name=first,$set=one\n\
          flowop both name=second,iters=2,$other=two\n\
          flowop finishoncount name=end,value=10,target=first.open } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!(count(&found, "first.open"), 10);
    assert_eq!(flowop(&found, "first.read")["bytes"], 10 * 2 * 2048);
    assert_eq!((count(&found, "second.inner.open"), count(&found, "second.inner.read")), (20, 60));
    assert_eq!(flowop(&found, "second.inner.read")["bytes"], 60 * 4096);
}

#[test]
fn semaphores_and_wakeups_keep_threads_in_step() {
    let directory = tempdir().unwrap();
    let text = "set mode quit firstdone\n\
        define fileset name=a,path=/tmp,entries=100,size=0,dirwidth=0\n\
        define process name=maker { thread name=t {\n\
          flowop createfile name=make,filesetname=a,fd=1\n\
          flowop closefile name=close,fd=1\n\
          flowop sempost name=post,value=1,target=wait,blocking } }\n\
        define process name=taker { thread name=t {\n\
          flowop semblock name=wait,value=10,highwater=20\n\
          flowop hog name=think,value=1000 } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    let (made, taken) = (count(&found, "make"), count(&found, "wait"));
    assert_eq!(made, 100);
    assert!((8..=10).contains(&taken), "{taken} times 10 of 100");
    let text = "define process name=a { thread name=t { flowop delay name=d,value=0.01\n\
          flowop wakeup name=w,target=b } }\n\
        define process name=b { thread name=t { flowop block name=b\n\
          flowop finishoncount name=end,value=5,target=b } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!(count(&found, "b"), 5);
    assert!(count(&found, "w") >= 5);
}

#[test]
fn random_variables_have_the_mean_that_is_asked_for() {
    let directory = tempdir().unwrap();
    let text = "define randvar name=$u,type=uniform,min=10,mean=20\n\
        set $u.mean=30\n\
        set $g=cvar(type=cvar-gamma,parameters=mean:500;gamma:1.5)\n\
        set $t=randvar(type=tabular,min=1k,round=1k,randtable={{50,1k,1k},{50,4k,4k}})\n\
        define fileset name=a,path=/tmp,entries=200,size=$t,dirwidth=10,prealloc\n\
        define process name=p { thread name=t {\n\
          flowop testrandvar name=uniform,value=$u\n\
          flowop testrandvar name=gamma,value=$g\n\
          flowop statfile name=stat,filesetname=a\n\
          flowop finishoncount name=end,value=20000 } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    let mean = |name: &str| flowop(&found, name)["values"]["mean"].as_f64().unwrap();
    assert!((mean("uniform") - 30.0).abs() < 1.0, "{}", mean("uniform"));
    assert!((mean("gamma") - 500.0).abs() < 25.0, "{}", mean("gamma"));
    let made = files(directory.path());
    assert!(made.iter().all(|(_, length)| [1024, 4096].contains(length)));
    assert!(made.iter().any(|(_, length)| *length == 4096) && made.iter().any(|(_, length)| *length == 1024));
}

#[test]
fn a_uniform_variable_without_a_mean_reaches_to_its_greatest_value() {
    let directory = tempdir().unwrap();
    let text = "set $x=randvar(type=uniform,min=100,max=300)\n\
        define fileset name=a,path=/tmp,entries=1,size=1,prealloc\n\
        define process name=p { thread name=t { flowop statfile name=s,filesetname=a\n\
          flowop testrandvar name=v,value=$x\n flowop finishoncount name=f,value=20000,target=s } }\nrun 30\n";
    let mean =
        |text: &str| flowop(&script(directory.path(), text, &[]), "v")["values"]["mean"].as_f64().unwrap();
    // The mean of 100 to 300 is 200; that of 100 to 140 is 120.
    assert!((mean(text) - 200.0).abs() < 4.0);
    assert!((mean(&text.replace("define fileset", "set $x.max=140\ndefine fileset")) - 120.0).abs() < 1.0);
}

#[test]
fn writes_append_and_stay_within_the_file() {
    let directory = tempdir().unwrap();
    let text = "define file name=grown,path=/tmp,size=0,prealloc\n\
        define file name=fixed,path=/tmp,size=64k,prealloc\n\
        define process name=p { thread name=t,memsize=64k {\n\
          flowop appendfile name=append,filename=grown,iosize=3k,fd=1\n\
          flowop fsync name=sync,fd=1\n\
          flowop write name=write,filename=fixed,iosize=10k,fd=2\n\
          flowop write name=random,filename=fixed,iosize=4k,random,fd=2\n\
          flowop finishoncount name=end,value=50,target=append } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!(["append", "sync", "write", "random"].map(|name| count(&found, name)), [50; 4]);
    let lengths: Vec<usize> = files(directory.path()).into_iter().map(|(_, length)| length).collect();
    // Six writes of 10 KiB fit in 64 KiB; the next one starts at offset 0.
    assert_eq!(lengths, [64 << 10, 50 * 3072]);
}

#[test]
fn without_a_descriptor_each_fileset_has_its_own_and_the_last_one_is_meant() {
    let directory = tempdir().unwrap();
    let text = "define file name=small,path=/tmp,size=1k,prealloc\n\
        define file name=large,path=/tmp,size=8k,prealloc\n\
        define process name=p { thread name=t {\n\
          flowop readwholefile name=a,filename=small\n\
          flowop readwholefile name=b,filename=large\n\
          flowop appendfile name=c,filename=small,iosize=1k\n\
          flowop fsync name=d\n\
          flowop closefile name=e\n\
          flowop finishoncount name=end,value=1,target=e } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!((&flowop(&found, "a")["bytes"], &flowop(&found, "b")["bytes"]), (&1024.into(), &8192.into()));
    assert_eq!((count(&found, "d"), count(&found, "e")), (1, 1));
    let lengths: Vec<usize> = files(directory.path()).into_iter().map(|(_, length)| length).collect();
    assert_eq!(lengths, [8192, 2048]);
}

#[test]
fn what_was_copied_has_the_length_of_its_source_and_a_file_is_deleted_by_its_descriptor() {
    let directory = tempdir().unwrap();
    let text = "set mode quit firstdone\nset $s=randvar(type=gamma,mean=20k,gamma=1500)\n\
        define fileset name=from,path=/tmp,entries=30,size=$s,dirwidth=4,prealloc\n\
        define fileset name=to,path=/tmp,entries=30,size=1,dirwidth=4\n\
        define process name=p { thread name=t {\n\
          flowop openfile name=open,filesetname=from,fd=1\n\
          flowop createfile name=create,filesetname=to,fd=2\n\
          flowop writewholefile name=write,fd=2,srcfd=1,iosize=4k\n\
          flowop closefile name=c1,fd=1\n flowop closefile name=c2,fd=2\n\
          flowop deletefile name=gone,fd=1 } }\nrun\n";
    let found = script(directory.path(), text, &[]);
    assert_eq!((count(&found, "write"), count(&found, "gone")), (30, 30));
    let left = files(directory.path());
    assert!(left.iter().all(|(path, _)| path.starts_with("fslab-wml/to/")) && left.len() == 30);
    let total: usize = left.iter().map(|(_, length)| length).sum();
    assert_eq!(flowop(&found, "write")["bytes"], total);
    assert_eq!(found["answer"]["filesets"][0]["bytes"], total);
}

/// Test that a write is synced if its file was opened with `dsync`, and that a `dsync` after that is not lost silently.
#[test]
fn the_flowop_that_opens_a_file_decides_how() {
    let workload = |first: &str, second: &str| {
        let directory = tempdir().unwrap();
        let text = format!(
            "define file name=a,path=/tmp,size=64k,prealloc\n\
            define process name=p {{ thread name=t {{\n\
            flowop write name=one,filename=a,iosize=4k{first}\nflowop write name=two,filename=a,iosize=4k{second}\n\
            flowop aiowrite name=aio,filename=a,iosize=4k,random\nflowop aiowait name=wait\n\
            flowop finishoncount name=end,value=8 }} }}\nrun 60\n"
        );
        script(directory.path(), &text, &[])
    };
    let synced = |found: &serde_json::Value, name: &str| flowop(found, name)["synced"].as_u64().unwrap();
    for (first, second, all, warned) in [
        ("", "", false, None),
        (",dsync", "", true, None),
        (",dsync", ",dsync", true, None),
        ("", ",dsync", false, Some("dsync of two (line 4)")),
        ("", ",directio=true", false, Some("directio of two (line 4)")),
        ("", ",noreadahead", false, Some("noreadahead of two (line 4)")),
    ] {
        let found = workload(first, second);
        for name in ["one", "two", "aio"] {
            assert!(count(&found, name) > 0);
            assert_eq!(
                synced(&found, name),
                if all { count(&found, name) } else { 0 },
                "{first}, {second}: {name}"
            );
        }
        assert_eq!(synced(&found, "wait"), 0);
        let warnings = found["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), usize::from(warned.is_some()), "{first}, {second}: {warnings:?}");
        if let Some(attribute) = warned {
            assert_eq!(warnings[0]["kind"], "no_effect");
            assert!(warnings[0]["message"].as_str().unwrap().starts_with(attribute), "{warnings:?}");
        }
    }
}
