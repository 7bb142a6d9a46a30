//! Directories that a destructive command must refuse: each command with each such path. The tests work on a tmpfs, and
//! the root mount is read-only.

use tempfile::tempdir;

use crate::common::with_own_mounts;

/// Mount a tmpfs at `$DIR` with files that must not be lost, make the root mount read-only, and define `refuses`.
const PRELUDE: &str = r#"
    mount -t tmpfs -o size=64m none "$DIR"
    mount -o remount,bind,ro /
    cd "$DIR"
    mkdir -p place/here/x real/sub empty home/me/sub mounted bound source
    for at in . place place/here place/here/x real real/sub home home/me source; do echo kept > $at/kept; done
    ln -s real link; ln -s empty hollow; ln -s nowhere dangling
    mount --bind real bound; mount -t tmpfs none mounted; echo kept > mounted/kept
    export HOME="$DIR/home/me"
    state() { find "$DIR" -printf '%p %D %i %s %l\n' | sort | cksum; }
    cases=0
    # Runs a command that has to refuse, and tells if it does not, or changes anything.
    refuses() {
        before=$(state); cases=$((cases + 1))
        said=$("$ENGINE" "$@" --json 2>&1) && echo "done: $*"
        case $said in *'"kind": "invalid"'*) ;; *) echo "otherwise: $*: $said" ;; esac
        [ "$before" = "$(state)" ] || { echo "changed: $*"; exit 1; }
    }
"#;

fn check(script: &str, cases: usize) {
    let directory = tempdir().unwrap();
    let output = with_own_mounts(directory.path(), &format!("{PRELUDE}{script}\necho cases $cases"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), format!("cases {cases}"), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn no_destructive_command_takes_what_was_not_meant() {
    let script = r#"
        cd place/here
        for path in . ./ ./. .. ../ ../. ../.. ../../ / // /. /.. //../ "$DIR/.." x/.. ./x/../.. ./x/. x//. \
            "$DIR" "$DIR/" "$DIR/place" "$DIR//place//" "$DIR/place/here" "$DIR/real/../place" "$DIR/real/." \
            "$DIR/link/../place" "$DIR/link" "$DIR/link/" "$DIR/link//" "$DIR/link/." "$DIR/hollow" "$DIR/hollow/" \
            "$DIR/dangling" "$DIR/dangling/" "$DIR/bound" "$DIR/bound//" "$DIR/mounted" "$DIR/home" "$DIR/home/me/" \
            /root "$(printf '%s' ~root)/."
        do
            refuses delete "$path" --yes
            refuses delete "$path" --keep-root
            refuses populate "$path" --class a:3:1k
            refuses sync-write "$DIR/source" "$path"
        done
        for full in "$DIR/real" "$DIR/real/" "$DIR/source"; do
            refuses populate "$full" --class a:3:1k
            refuses sync-write "$DIR/source" "$full"
        done
        refuses sync-write "$DIR/source" "$DIR/source/inner"
        mkdir ../aside; mount --bind "$DIR/source" ../aside
        refuses sync-write "$DIR/source" ../aside/inner"#;
    check(script, 41 * 4 + 3 * 2 + 2);
}

pub(crate) fn a_system_directory_is_known_behind_a_bind_mount() {
    let script = r#"
        mount -t tmpfs none /boot; mkdir -p /boot/a/b /boot/c; echo kept > /boot/a/b/kept
        mkdir "$DIR/aside" "$DIR/root" "$DIR/root/lost+found" "$DIR/under"; mount --bind /boot/a "$DIR/aside"
        mkdir "$DIR/real/point"; mount -t tmpfs none "$DIR/real/point"; mount --bind "$DIR/real" "$DIR/under"
        for path in "$DIR/aside/b" "$DIR/root/lost+found" "$DIR/under/point"; do
            refuses delete "$path" --yes
            refuses delete "$path" --keep-root
            refuses sync-write "$DIR/source" "$path"
        done
        refuses small-files "$DIR/aside" --files 3
        refuses meta "$DIR/aside" --files 3
        refuses iozone "$DIR/aside" --size 64k
        refuses wml varmail --dir "$DIR/aside" --run 0.1
        umount /boot; "$ENGINE" delete "$DIR/aside/b" > "$DIR/out" && [ ! -e "$DIR/aside/b" ]"#;
    check(script, 13);
}

pub(crate) fn what_the_system_keeps_while_it_runs_is_known() {
    let script = r#"
        mount -t tmpfs none /run; mount -t tmpfs none /var/lib; mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3
        mkdir -p /run/systemd/units /run/service/data /dev/disk/by-id /dev/shm /var/lib/dpkg/info /var/lib/service/data
        mount -t tmpfs none /dev/shm; mkdir /dev/shm/data; echo kept > /var/lib/dpkg/info/kept
        for path in /run/systemd /run/systemd/units /run/service /dev/disk /dev/disk/by-id /var/lib/dpkg/info \
            /var/lib/service
        do
            refuses delete "$path" --yes
            refuses delete "$path" --keep-root
            refuses sync-write "$DIR/source" "$path"
        done
        refuses small-files /dev/disk --files 3
        [ -e /dev/disk/by-id ] && [ -e /var/lib/dpkg/info/kept ] || echo gone
        for path in /run/service/data /dev/shm/data /var/lib/service/data; do
            "$ENGINE" delete "$path" > "$DIR/out" && [ ! -e "$path" ] || echo "refused: $path"
        done
        "$ENGINE" small-files /run --files 3 > "$DIR/out" || echo "refused: a work directory""#;
    check(script, 22);
}

pub(crate) fn a_home_directory_of_no_local_account_is_known() {
    let script = r#"
        mount -t tmpfs none /home; mkdir -p /home/directory-service/tree/x; echo kept > /home/directory-service/kept
        for path in /home /home/directory-service; do
            refuses delete "$path" --yes
            refuses delete "$path" --keep-root
            refuses sync-write "$DIR/source" "$path"
        done
        refuses populate /home/new --class a:3:1k
        "$ENGINE" delete /home/directory-service/tree > "$DIR/out"; [ ! -e /home/directory-service/tree ]
        "$ENGINE" small-files /home --files 3 > "$DIR/out""#;
    check(script, 7);
}

pub(crate) fn a_deleted_current_directory_protects_what_was_around_it() {
    let script = r#"
        mkdir -p place/gone/inner; cd place/gone/inner; rmdir "$DIR/place/gone/inner" "$DIR/place/gone"
        for path in . .. ../.. "$DIR/place" "$DIR/" /; do refuses delete "$path"; done
        "$ENGINE" delete "$DIR/real/sub" > "$DIR/out" && [ ! -e "$DIR/real/sub" ]"#;
    check(script, 6);
}

pub(crate) fn work_directories_are_never_those_of_others() {
    let script = r#"
        cd place
        for name in fslab-small-files fslab-meta; do
            case $name in *meta) command="meta --operations unlink" ;; *) command="small-files --operations delete" ;; esac
            "$ENGINE" ${command%% *} "$DIR/real" --files 3 --operations create > /dev/null
            mkdir -p linked mount/$name inside
            ln -s "$DIR/real/$name" linked/$name
            mount --bind "$DIR/real/$name" mount/$name
            refuses $command linked --files 3
            refuses $command mount --files 3
            cd "$DIR/real/$name"; refuses $command .. --files 3; cd "$DIR/place"
            mkdir -p deep/$name/d0000000000; mount --bind "$DIR/real/$name/d0000000000" deep/$name/d0000000000
            before=$(state); "$ENGINE" $command deep --files 3 > /dev/null 2>&1 && echo "done: $name"
            [ "$before" = "$(state)" ] || echo "changed: $name"
        done
        for dir in linked mount; do
            mkdir -p linked mount/fslab-wml; [ -e linked/fslab-wml ] || ln -s "$DIR/real" linked/fslab-wml
            before=$(state)
            "$ENGINE" wml --script 'define fileset name=sub,path=/tmp,entries=1,size=1k,prealloc
                create files
                shutdown files' --dir $dir > said 2>&1 && [ $dir = linked ] && echo "done: wml"
            rm said; [ $dir = mount ] || [ "$before" = "$(state)" ] || echo "changed: wml"
        done; [ -e "$DIR/real/sub/kept" ]
        workload='define fileset name=sub,path=/tmp,entries=1,size=1k,prealloc
            create files
            shutdown files'
        mkdir -p top/fslab-wml inner/fslab-wml/sub; mount --bind "$DIR/real" top/fslab-wml
        mount --bind "$DIR/real" inner/fslab-wml/sub
        for dir in top inner; do
            refuses wml --script "$workload" --dir $dir
            refuses wml --script "$workload" --dir $dir --reuse
        done"#;
    check(script, 10);
}
