//! Workloads whose rate is limited by events.

use crate::common::wml::{count, flowop, script};
use tempfile::tempdir;

#[test]
fn events_limit_the_rate_of_all_threads_together() {
    let directory = tempdir().unwrap();
    let text = "eventgen rate=200\n\
        define fileset name=a,path=/tmp,entries=20,size=1k,dirwidth=10,prealloc\n\
        define process name=p { thread name=t,instances=4 {\n\
          flowop statfile name=stat,filesetname=a\n\
          flowop opslimit name=limit\n flowop finishoncount name=end,value=100 } }\nrun 600\n";
    let found = script(directory.path(), text, &[]);
    let rate = found["answer"]["runs"][0]["summary"]["rate_per_second"].as_f64().unwrap();
    // Tolerance of 10 % above the rate. A busy machine may be slower, so there is no lower bound.
    assert!(rate <= 220.0, "{rate}");
    assert!(count(&found, "stat") >= 100);
}

/// Test that latency from the scheduled time is at least the latency, however late a thread is. The limit flowop itself
/// has none.
#[test]
fn where_events_limit_the_rate_latency_is_told_from_the_scheduled_time() {
    let directory = tempdir().unwrap();
    let text = "eventgen rate=2000\n\
        define fileset name=a,path=/tmp,entries=20,size=64k,dirwidth=10,prealloc\n\
        define process name=p { thread name=t {\n\
          flowop eventlimit name=limit\n\
          flowop aiowrite name=write,filesetname=a,iosize=4k,random,fd=1\n\
          flowop statfile name=stat,filesetname=a\n\
          flowop finishoncount name=end,value=200,target=stat } }\nrun 60\n";
    let found = script(directory.path(), text, &[]);
    for name in ["write", "stat"] {
        let one = flowop(&found, name);
        assert_eq!(one["count"], 200, "{one:#}");
        let mean = |key: &str| one[key]["mean"].as_f64().unwrap();
        assert!(mean("scheduled_latency_ns") >= mean("latency_ns"), "{one:#}");
    }
    assert_eq!(flowop(&found, "write")["bytes"], 200 * 4096);
    assert_eq!(flowop(&found, "limit")["scheduled_latency_ns"], serde_json::Value::Null);
}
