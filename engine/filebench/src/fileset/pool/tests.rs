use super::*;

#[test]
fn files_come_in_turn_and_change_between_the_lists() {
    let pool = Pool::new(4, |number| number % 2 == 0);
    let never = || false;
    assert_eq!(pool.pick(Wanted::Existing, None, 0, never), Some(0));
    assert_eq!(pool.pick(Wanted::Existing, None, 0, never), Some(2));
    pool.give_back(0, Fate::Gone);
    pool.give_back(2, Fate::Unchanged);
    assert_eq!(pool.open(Some(2), 0, never), Some(2));
    assert_eq!(pool.pick(Wanted::Existing, None, 0, never), Some(2));
    pool.give_back(2, Fate::Unchanged);
    assert_eq!(pool.take(2, never), Some(Taken { exists: true, opened: 1 }));
    pool.give_back(2, Fate::Gone);
    assert_eq!(pool.pick(Wanted::Existing, None, 0, never), None);
    assert_eq!(pool.pick(Wanted::Missing, Some(2), 0, never), Some(2));
    assert_eq!(pool.pick(Wanted::Missing, Some(2), 0, never), Some(3));
}

#[test]
fn files_that_are_open_are_passed_over() {
    let pool = Pool::new(3, |_| true);
    for number in 0..2 {
        assert_eq!(pool.open(None, 0, || false), Some(number));
    }
    assert_eq!(pool.pick_closed(None, || false), Closed::This(2));
    pool.give_back(2, Fate::Gone);
    assert_eq!(pool.pick_closed(None, || false), Closed::AllOpen);
    pool.close(0);
    assert_eq!(pool.pick_closed(Some(1), || false), Closed::This(0));
}

/// Opening a file does not reserve it: several threads open the same file without waiting.
#[test]
fn a_file_is_opened_by_several_at_once_and_stays_until_all_have_closed_it() {
    let pool = Pool::new(1, |_| true);
    let at_once = || true;
    assert_eq!([pool.open(None, 0, at_once), pool.open(None, 1, at_once)], [Some(0), Some(0)]);
    for _ in 0..2 {
        assert_eq!(pool.pick_closed(None, at_once), Closed::AllOpen);
        pool.close(0);
    }
    assert_eq!(pool.pick_closed(None, at_once), Closed::This(0));
    assert_eq!(pool.open(None, 0, at_once), None, "it is being deleted");
}

#[test]
fn what_is_in_use_for_a_moment_is_waited_for() {
    let pool = Pool::new(1, |_| true);
    assert_eq!(pool.pick(Wanted::Existing, None, 0, || false), Some(0));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.pick(Wanted::Existing, None, 0, || false));
        std::thread::sleep(Duration::from_millis(30));
        pool.give_back(0, Fate::Unchanged);
        assert_eq!(waiting.join().unwrap(), Some(0));
    });
}
