"""Tests of mistakes in the parameters of each tool: each is refused at its key, with its reason."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from fslab.workloads import REGISTRY

DIGEST = "0" * 64
# Tool → parameters without the key that is wrong, and for each wrong one what is said: ``key: reason``.
CASES: dict[str, tuple[dict[str, Any], list[tuple[dict[str, Any], str]]]] = {
    "bonnie": ({}, [
        ({}, "nothing to do"),
        ({"size": "1500k"}, "whole number of MiB"),
        ({"size": "1g", "bs": "12k"}, "power of two"),
        ({"size": "1g", "bs": "128"}, "power of two"),
        ({"size": "1g", "ram": "1g"}, "at least twice 'ram'"),
        ({"size": "1g", "dirs": 2}, "'dirs' has no effect without files"),
        ({"files": 1024, "direct": True}, "'direct' has no effect without size"),
        ({"files": 10000}, "not a multiple of 1024.*write 10240"),
        ({"files": 1024, "dirs": 1025}, "more directories .1025. than files"),
        ({"files": 1024, "min-size": "4k"}, "'min-size' is larger"),
        ({"files": 1024, "max-size": "2g"}, "too large"),
        ({"size": "1g", "direct": True, "fast": False}, "byte-by-byte"),
        ({"size": "1g", "machine": "x"}, "Extra inputs"),
    ]),
    "command": ({"run": "a"}, [
        ({"run": None}, "^run: "),
        ({"user": "a b"}, "is the name of a user"),
        ({"limits.files": 3}, "unknown limit 'files'"),
        ({"limits": [4]}, "'limits' maps the name of a limit to its value: .*known: as, core"),
        ({"limits.nofile": "many"}, "not a number, 'unlimited' or SOFT:HARD"),
        ({"run": "a 'b"}, "quote is not closed"),
        ({"run": "a\nb"}, "must be one command"),
        ({"run": ""}, "must be one command"),
        ({"rum": 1}, "unknown key 'rum'"),
        ({"metrics.x.unit": "s"}, "needs a 'pattern' with one group"),
        ({"metrics.x.pattern": "(a)(b)"}, "needs a 'pattern' with one group"),
        ({"metrics.x.pattern": "(a"}, "metric 'x'"),
        ({"metrics.x.pattern": "(?i)([\0-\U0010ffff]" + "[\0-\uffff]" * 200 + ")"}, "more than 1,000"),
        ({"metrics.x.pattern": f"(a{{{'9' * 30}}})"}, "metric 'x'"),
        ({"metrics.x.pattern": "(" * 4000 + ")" * 4000}, "metric 'x'"),
        ({"metrics.x.pattern": "(a)", "metrics.x.unit": "miles"},
         "metric 'x': unknown unit 'miles': .*known: %, B, B/s, IOPS, count, files/s, ns, ops/s, ratio, s$"),
        ({"metrics.x.pattern": "(a)", "metrics.x.better": "high"},
         "unknown better 'high': did you mean 'higher'. known: higher, lower, neither"),
        ({"metrics.x.pattern": "(a)", "metrics.x.factor": "k"},
         "metric 'x': 'factor' is 'k', not a number > 0"),
        *(({"metrics.x.pattern": "(a)", "metrics.x.factor": factor}, f"'factor' is '{said}', not a num")
          for factor, said in (("inf", "inf"), ("nan", "nan"), (True, "true"), (0, "0"), (-1, "-1"))),
        ({"metrics.x.colour": "red"}, "is not metrics.NAME.KEY"),
        ({"metrics.time.pattern": "(a)"}, "exists already"),
        ({"run": "sh {file}"}, "'file' needs {file} in a command, and {file} needs 'file'"),
        ({"run": "sh", "file": "x.sh", "file_text": ""}, "'file' needs {file} in a command"),
        ({"run": "sh {file}", "file": "x.sh"}, "the text of 'file: x.sh' is missing"),
    ]),
    "crash": ({}, [
        ({"sector": "500"}, "^sector: "), ({"sector": "0"}, "^sector: "), ({"length": 4}, "^length: "),
        ({"states": 0}, "^states: "),
        ({"application": "sqlit"}, "did you mean 'sqlite'"),
        ({"application": "sqlite", "settings": "journal_mode=fast"}, "invalid value 'fast' for journal_mode"),
        ({"settings": "journal_mode=wal"}, "needs 'application'"),
        ({"application": "sqlite", "transactions": 0}, "transactions"),
        ({"transactions": 7}, "'transactions' needs 'application'"),
        ({"application": "sqlite", "length": 2}, "'length' has no effect with 'application'"),
        ({"application": "sqlite", "operations": "published"}, "'operations' has no effect"),
        ({"application": "sqlite", "skip": 4}, "'skip' has no effect"),
    ]),
    "dd": ({"op": "write", "count": 1}, [
        ({"bs": "1xB"}, "^bs: "), ({"bs": "0"}, "^bs: "), ({"oflag": "fast"}, "^oflag: "),
        ({"conv": "sparse"}, "^conv: "), ({"op": "copy"}, "^op: "), ({"count": 0}, "^count: "),
        ({"if": "/dev/sda"}, "^if: "),
        ({"op": "read", "oflag": "direct"}, "'oflag' is not supported by op: read"),
        ({"op": "read", "conv": "fdatasync"}, "'conv' is not supported by op: read"),
        ({"iflag": "direct"}, "'iflag' is not supported by op: write"),
        ({"bs": "1000", "oflag": "direct"}, "'bs' must be a multiple of 512 bytes with direct I/O"),
    ]),
    "engine": ({}, [
        ({"operations": "create,reed"}, "^operations: "), ({"operations": "read,create"}, "^operations: "),
        ({"operations": "read,read"}, "^operations: "), ({"operations": "create,"}, "^operations: "),
        ({"operations": "unlink"}, "^operations: "), ({"pattern": "x"}, "^pattern: "),
        ({"scale": 0.1}, "^scale: "), ({"order": "depth"}, "^order: .*unknown order"),
        ({"operation": "large-files"}, "^operation: "), ({"size": "4x"}, "^size: "), ({"files": 0}, "^files: "),
        ({"thread": 2}, "^thread: "), ({"size": "4k", "max-size": "1k"}, "smaller than 'size'"),
        ({"operation": "analyze", "pattern": "x"}, "not supported by 'analyze'"),
        ({"operation": "search", "by": "name"}, "use it with classify"),
        ({"operation": "meta", "operations": "create,fsync"}, "unknown operation 'fsync'"),
        ({"operation": "meta", "operations": "unlink,create"}, "in the order"),
        ({"operation": "analyze", "classes": "a:b:4k"}, "name:files:size"),
        ({"operation": "analyze", "classes": "a:1:4x"}, "not a size"),
        ({"operation": "search", "plant": "needle"}, "text:share"),
        ({"operation": "search", "plant": "need:0.1"},
         "'need' has 4 bytes; a text to insert must have 6 to 100"),
        ({"operation": "analyze", "plant": "needle:0.1:0"}, "text:share"),
        ({"operation": "analyze", "plant": "needle:0.1:2:3"}, "text:share"),
        ({"operation": "search", "pattern": "error: 5"}, "'error: 5' contains ':'.* set 'plant' or 'regex'"),
        ({"operation": "search", "pattern": "needl"}, "'needl' has 5 bytes.* set 'plant' or 'regex'"),
        ({"operation": "search", "pattern": "n" * 101}, "has 101 bytes"),
        ({"operation": "search", "pattern": "\u00fc" * 51}, "has 102 bytes"),
        ({"operation": "search", "pattern": "one\ntwo"}, "must be one line"),
        ({"operation": "search", "pattern": "", "plant": "needle:0.1"}, "'pattern' must be one line"),
        ({"operation": "analyze", "classes": "a:\u00b2:4k"}, "name:files:size"),
        ({"operation": "analyze", "classes": "a:1:1.5k"}, "name:files:size"),
        ({"operation": "analyze", "classes": "a:1:4k:normal"}, "lognormal, uniform or fixed"),
        ({"operation": "analyze", "order": "random"}, "unknown order"),
        ({"operation": "sync-write", "method": "rsync"}, "reflink"),
        ({"operation": "delete", "classes": "a:1000:4k:fixed", "scale": 0.0001}, "the tree has no file"),
    ]),
    "filebench": ({}, [
        ({}, "give one of personality, script and file, not none"),
        ({"personality": "varmail", "file": "/x.f", "file_text": ""}, "not personality and file"),
        ({"personality": "varmial"}, "varmail"),
        ({"personality": "oltp", "set": "filesize=>64m"}, "'>64m' is not a size"),  # the plan needs this size
        ({"file": "/etc/shadow"}, "the text of 'file: /etc/shadow' is missing"),
        ({"personality": "varmail", "digest": DIGEST}, "'digest' needs 'file'"),
        ({"personality": "varmail", "set": "nfiles"}, "'nfiles' is not name=value"),
        ({"personality": "varmail", "meanfilesize": "large"}, "is not a size"),
        ({"personality": "varmail", "runtime": "0s"}, "greater than zero"),
        ({"personality": "varmail", "nfile": 5}, "nfile"),
    ]),
    "fio": ({"rw": "read", "size": "1g"}, [
        ({"rwmixraed": 70}, r"^rwmixraed: fio has no such option: did you mean 'rwmixread'\?$"),
        ({"xyzzy": 1}, "^xyzzy: fio has no such option: delete it, or see fio --cmdhelp=all$"),
        ({"job": "j.fio"}, "^job: fio has no such option: name a job file with 'file'$"),
        *(({key: "x"}, f"^{key}: not allowed: ")
          for key in ("opendir", "read_iolog", "aux-path", "verify_state_load", "create_only")),
        *(({"filename": name}, "^filename: must be plain file names")
          for name in ("/dev/sda", "..", "a:../b", "-", "")),
        *(({key: "reboot"}, f"^{key}: .*may not run commands")
          for key in ("exec_prerun", "exec_postrun", "trigger")),
        *(({key: "1"}, f"^{key}: ") for key in (
            "ioscheduler", "cgroup", "uid", "gid", "client", "scale", "variables.A")),
        *(({key: "1"}, f"^{key}: orders the jobs of a job file: use 'file'") for key in ("stonewall", "wait_for")),
        ({"mem": "mmaphuge:/etc/passwd"}, "^mem: file names are not allowed here: delete the line$"),
        ({"buffer_pattern": "'secret'"}, "^buffer_pattern: "),
        ({"blocksize": "4k"}, "^blocksize: write it as 'bs'$"),
        *(({"size": size}, "^size: .*is not a size") for size in ("64MiX", "20%", "0", "-1", "1e3")),
        ({"runtime": "two"}, "^runtime: .*is not a duration"), ({"runtime": "0.1ms"}, "^runtime: .*less than a milli"),
        # With a rate of 1.5m, fio would transfer one byte per second.
        *(({key: value}, f"^{key}: fio reads only the first digits") for key, value in (
            ("io_size", "2.5m"), ("offset", "1.5m"), ("rate", "1.5m"), ("rate", "10 m"), ("rate_iops", "0.5k"),
            ("bsrange", "1.5k-4k"), ("thinktime_blocks", 1.5))),
        # To fio, 1m30s and 30sec are microseconds.
        *(({"startdelay": value}, f"^startdelay: fio reads '{value}' as another time")
          for value in ("0.5", "2.5ms", "1m30s", "30sec", "300 ms")),
        ({"iodepth": 32}, "^iodepth: has no effect above 1 with the synchronous I/O engine psync"),
        *(({"rw": rw}, "^rw: .*trims block devices only") for rw in ("trim", "randtrim", "trimwrite")),
        ({"ioengine": "filecreate"}, "^ioengine: .*transfers no data"),
        ({"ioengine": "libiao"}, "^ioengine: .*did you mean 'libaio'"), ({"ioengine": "exec"}, "^ioengine: "),
        ({"ioengine": "external:/tmp/x.so"}, "^ioengine: "),
        ({"ioengine": "mmap", "direct": True}, "^direct: has no effect with the I/O engine mmap"),
        ({"time_based": True}, "^time_based: needs 'runtime'$"),
        ({"nrfiles": "abc"}, "^nrfiles: 'abc' is not a whole number in digits$"),
        ({"nrfiles": "4k"}, "^nrfiles: '4k' is not a whole number in digits$"),
        ({"nrfiles": "2000000000"}, "^nrfiles: 2000000000 files cannot share 1g: less than one byte each$"),
        ({"fsync": 1}, "^fsync: needs an 'rw' that writes$"),
        *(({"rw": "write", **keys}, f"^{wrong}: ") for keys, wrong in (
            ({"bs": "2g"}, "bs"), ({"thinktime_spin": 5}, "thinktime_spin"), ({"loops": -1}, "loops"),
            ({"rw": "read", "verify_pattern": "0xff"}, "verify"), ({"nrfiles": 4, "bs": "512m"}, "bs"),
            ({"rw": "rw", "bs": "4k,2g"}, "bs"),
            ({"rw": "randread", "verify": "md5"}, "verify"), ({"verify": "md5", "verify_only": True}, "verify"),
            ({"rw": "rw", "create_on_open": True}, "create_on_open"), ({"zonesize": "64k"}, "zonesize"),
            ({"zonemode": "zbd"}, "zonemode"), ({"allow_file_create": False}, "allow_file_create"),
            ({"nrfiles": 0}, "nrfiles"), ({"iodepth": 0}, "iodepth"), ({"description": ""}, "description"),
            ({"rw": "rw", "rwmixread": 100, "fsync": 1}, "fsync"))),
    ]),
    "io-errors": ({}, [({"fault": "smoke"}, "known: bit-rot-data")]),
    "iozone": ({"size": "1m"}, [
        ({"size": None}, "^size: "),
        ({"size": "1000"}, "whole number of KiB"),
        ({"size": "100k", "record": "64k"}, "not a multiple of the record length"),
        ({"size": "64m", "record": "32m"}, "longest record"),
        ({"size": "2k", "record": "1k"}, "smallest file is 4k"),
        ({"tests": "3"}, "not a list of 0, 1 and 2"),
        ({"tests": "1,1"}, "not a list of 0, 1 and 2"),
        ({"file": "/dev/sda"}, "Extra inputs"),
        ({"rounds": 10}, "more than one of 'rounds' needs"),
        ({"program": "engine", "cache-line": 64}, "'cache-line' is not supported by 'program: engine'"),
    ]),
    "recovery": ({}, [
        ({"files": -1}, "^files: "), ({"size": "0"}, "^size: "), ({"unflushed": "some"}, "^unflushed: "),
        ({"existing": 10_000_000}, "^existing: "),
    ]),
    "shell": ({"operation": "rm"}, [
        ({"operation": "mkdir", "size": "4k"}, "'size' is not supported by operation: mkdir"),
        ({"operation": "dd", "size": "0"}, "at least one byte"),
        ({"operation": "create", "size": "many"}, "is not a size"),
        ({"operation": "mv"}, "Input should be"),
        ({"files": 0}, "greater than or equal to 1"),
        ({"files": "1; reboot"}, "valid integer"),
    ]),
    "sysbench": ({"file-test-mode": "seqrd"}, [
        ({"file-test-mode": "rndwrt"}, "^file-test-mode: "), ({"file-total-size": "1.5x"}, "^file-total-size: "),
        ({"file-block-size": "0"}, "^file-block-size: "), ({"file-extra-flags": "fast"}, "^file-extra-flags: "),
        ({"file-extra-flags": "direct,dsync"}, "beside direct"),
        ({"file-extra-flags": "direct", "file-io-mode": "mmap"}, "no effect with 'file-io-mode: mmap'"),
        ({"file-fsync-all": "maybe"}, "^file-fsync-all: "), ({"file-numb": 3}, "^file-numb: "),
        ({"threads": 0}, "^threads: "), ({"time": 0}, "would not end"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "raw", "said"),
    [
        (tool, {key: value for key, value in (least | wrong).items() if value is not None}, said)
        for tool, (least, cases) in CASES.items()
        for wrong, said in cases
    ],
)
def test_a_mistake_is_refused_with_its_reason(tool: str, raw: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        REGISTRY.get(tool).parse_parameters(raw)
    (found,) = caught.value.errors()
    told = f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
    assert re.search(said, told), told
