//! Tests that need mounts or loop devices. They are reported as ignored where these are not permitted. Mounts need root
//! or a user name space; loop devices need root.

#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod direct;
mod full;
mod guard;
mod mounts;
mod nodes;
mod room;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

macro_rules! trials {
    ($allowed:expr, $why:literal: $($module:ident :: $test:ident),* $(,)?) => {
        [$(Trial::ignorable_test(stringify!($test), || {
            if !$allowed {
                return Ok(Completion::ignored_with($why));
            }
            $module::$test();
            Ok(Completion::Completed)
        })),*]
    };
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mounts = trials![common::may_mount(), "needs root or user name spaces":
        full::a_full_file_system_ends_a_mirror_and_a_data_set,
        full::a_full_file_system_is_named,
        full::a_full_file_system_is_named_and_left_clean,
        guard::a_deleted_current_directory_protects_what_was_around_it,
        guard::a_home_directory_of_no_local_account_is_known,
        guard::a_system_directory_is_known_behind_a_bind_mount,
        guard::no_destructive_command_takes_what_was_not_meant,
        guard::what_the_system_keeps_while_it_runs_is_known,
        guard::work_directories_are_never_those_of_others,
        mounts::a_top_that_stays_is_not_counted_as_deleted,
        mounts::delete_does_not_cross_into_another_file_system,
        mounts::a_method_that_cannot_work_is_an_error,
        mounts::mounts_are_left_out_and_no_failure,
        room::growing_files_end_a_workload_before_memory_is_gone,
        room::known_sizes_are_compared_with_what_is_free,
    ];
    let loops = trials![common::is_root() && common::may_mount(), "needs root":
        direct::a_workload_asks_for_what_suits_the_device,
        direct::the_buffer_has_to_suit_the_device,
        damage::a_bad_sector_ends_a_workload,
        damage::a_bad_sector_is_no_end_of_a_file,
        mounts::subvolumes_are_left_out_and_no_failure,
        nodes::what_is_no_file_is_never_opened,
        nodes::a_manifest_is_written_through_no_link,
        nodes::a_work_directory_of_another_user_is_refused,
        nodes::a_workload_uses_no_files_of_another_user,
    ];
    libtest_mimic::run(&arguments, mounts.into_iter().chain(loops).collect()).exit_code()
}
