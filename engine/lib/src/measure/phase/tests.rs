use std::sync::atomic::AtomicUsize;

use super::*;
use crate::measure::Detail;
use crate::measure::syscall::Syscall;

const MEASURE: Measure = Measure { latency: Detail::Syscalls, interval_ns: None };

fn phase(threads: usize) -> Phase<'static> {
    Phase::new("test", threads, &MEASURE, Bandwidth::Meaningless).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "as workers are")]
fn nothing(_: usize, (): (), _: &mut Recorder<'_>) -> Result<()> {
    Ok(())
}

#[test]
fn only_a_sync_counts_as_one() {
    let linked = phase(2).run(unprepared, nothing, Some(|_: &mut Finish| Ok(()))).unwrap().0;
    assert_eq!(linked.sync_seconds, None);
    let synced = phase(2).run(unprepared, nothing, Some(|f: &mut Finish| f.sync(|| Ok(())))).unwrap().0;
    let sync = synced.sync_seconds.unwrap();
    assert!(synced.last_finished_seconds + sync <= synced.seconds + 1e-9, "{synced:?}");
}

#[test]
fn a_single_worker_has_the_thread_of_the_caller() {
    let here = |_, (), _: &mut Recorder<'_>| Ok(thread::current().id());
    assert_eq!(phase(1).run(unprepared, here, NOTHING).unwrap().1, [thread::current().id()]);
    let of_two = phase(2).run(unprepared, here, NOTHING).unwrap().1;
    assert!(of_two[0] != of_two[1]);
}

#[test]
fn the_start_is_told_once_all_are_ready_and_before_any_works() {
    for threads in [1, 3] {
        let (ready, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let prepare = |_| {
            ready.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        let work = |_, (), _: &mut Recorder<'_>| Ok(gone.load(Ordering::SeqCst));
        let go = || gone.store(ready.load(Ordering::SeqCst), Ordering::SeqCst);
        assert_eq!(phase(threads).run_from(go, prepare, work, NOTHING).unwrap().1, vec![threads; threads]);
    }
}

/// No worker starts before all are prepared, and the time of the preparation is not part of the first operation.
#[test]
fn what_workers_need_is_made_before_the_barrier() {
    use crate::measure::clock::fake;
    let prepared = AtomicUsize::new(0);
    let prepare = |_| {
        fake::start();
        fake::spend(5_000_000_000);
        prepared.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let work = |_, (), recorder: &mut Recorder<'_>| {
        assert_eq!(prepared.load(Ordering::SeqCst), 3);
        fake::spend(700);
        recorder.end_sole(Syscall::Stat, 0);
        Ok(())
    };
    let operation = phase(3).run(prepare, work, NOTHING).unwrap().0;
    assert_eq!((operation.count, operation.latency_ns.unwrap().max), (3, 700));
    assert!((operation.seconds - 700e-9).abs() < 1e-12, "{}", operation.seconds);
}

#[test]
fn one_that_cannot_prepare_turns_all_away() {
    let worked = AtomicBool::new(false);
    let prepare = |index| if index == 1 { Err(Error::Invalid("no memory".into())) } else { Ok(()) };
    let work = |_, (), _: &mut Recorder<'_>| {
        worked.store(true, Ordering::Relaxed);
        Ok(())
    };
    let failed = phase(3).run(prepare, work, NOTHING).unwrap_err();
    assert_eq!((failed.to_string().as_str(), worked.into_inner()), ("no memory", false));
}
