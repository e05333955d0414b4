//! The C interface as C programs see it: the library is linked and installed, and a program compiled against it.

use srdma_capi::{
    SrdmaBuffer, SrdmaEvent, SrdmaGroupOptions, SrdmaJoinOptions, SrdmaOptions, SrdmaRegion, SrdmaStatistics,
};
use srdma_testkit::built;
use std::collections::BTreeSet;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).expect("a file of the crate")
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// A directory with the installed library.
fn installed() -> tempfile::TempDir {
    let prefix = tempfile::tempdir().expect("a directory");
    run(Command::new(file("install")).arg(built::static_library("libsrdma_capi")).arg(prefix.path()));
    prefix
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// The words of a text that begin with `srdma_` and are followed by `end`.
fn names(text: &str, end: char) -> BTreeSet<String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let places = text.match_indices("srdma_").filter(|(at, _)| !text[..*at].ends_with(is_letter));
    let name = |(at, _): (usize, &str)| {
        let length = text[at..].find(|letter| !is_letter(letter)).unwrap_or(text.len() - at);
        text[at + length..].starts_with(end).then(|| text[at..at + length].to_owned())
    };
    places.filter_map(name).collect()
}

/// What is exported, with its symbol versions, is what `abi.txt` lists: an entry is never removed or changed.
#[test]
fn the_symbols_are_those_of_the_list() {
    let prefix = installed();
    let library = prefix.path().join("lib/libsrdma.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "--with-symbol-versions"]).arg(&library));
    let is_function = |line: &&str| line.contains(" T ");
    let exported: BTreeSet<String> =
        symbols.lines().filter(is_function).filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    assert_eq!(exported, lines(&text("abi.txt")));
    let others: Vec<&str> = symbols.lines().filter(|line| !is_function(line) && !line.contains(" A ")).collect();
    assert_eq!(others, [""; 0], "nothing else is visible");

    let header = text("include/srdma.h");
    let without_comments: String =
        header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect();
    let functions: BTreeSet<String> =
        exported.iter().filter_map(|it| it.split('@').next()).map(str::to_owned).collect();
    assert_eq!(names(&without_comments, '('), functions, "srdma.h declares them");
    assert_eq!(names(&text("srdma.map"), ';'), functions, "srdma.map has them");
}

#[test]
fn the_shared_library_has_its_name_and_needs_no_other_but_the_systems() {
    let prefix = installed();
    let dynamic = run(Command::new("objdump").arg("-p").arg(prefix.path().join("lib/libsrdma.so")));
    let values = |key: &str| -> Vec<String> {
        let lines = dynamic.lines().filter_map(|line| line.trim().strip_prefix(key));
        lines.map(|value| value.trim().to_owned()).collect()
    };
    assert_eq!(values("SONAME"), ["libsrdma.so.0"]);
    for needed in values("NEEDED") {
        let is_known = ["libc.", "libgcc_s.", "libm.", "ld-linux", "libpthread.", "libdl."];
        assert!(is_known.iter().any(|known| needed.starts_with(known)), "{needed}");
    }
}

/// `srdma.h` and the structures of this crate agree in every member; the program finds every error that it expects, and
/// has the log (D202); memory of a GPU is refused (D203).
#[test]
fn a_c_program_runs_against_the_shared_library() {
    let prefix = installed();
    let flags = run(Command::new("pkg-config")
        .args(["--cflags", "--libs", "srdma"])
        .env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig")));
    let program = prefix.path().join("check");
    let warnings = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-pedantic", "-Wall", "-Wextra", "-Werror"];
    run(Command::new("cc")
        .args(warnings)
        .arg(file("tests/capi/check.c"))
        .args(flags.split_whitespace())
        .args(["-lpthread", "-ldl", "-o"])
        .arg(&program));
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"])
        .arg(file("tests/capi/fake_cuda.c"))
        .arg("-o")
        .arg(prefix.path().join("lib/libcuda.so.1")));
    let output = run(Command::new(&program)
        .env("LD_LIBRARY_PATH", prefix.path().join("lib"))
        .env_remove("SRDMA_TOKEN_FILE")
        .env_remove("SRDMA_CA"));

    let mut expected = BTreeSet::new();
    macro_rules! layout {
        ($name:literal, $structure:ident: $($member:ident $type:ty),*) => {
            expected.insert(format!("layout {} {}", $name, size_of::<$structure>()));
            $(expected.insert(format!(
                "layout {}.{} {} {}",
                $name, stringify!($member), offset_of!($structure, $member), size_of::<$type>()
            ));)*
        };
    }
    layout!("srdma_options", SrdmaOptions: size usize, provider usize, controller usize, token_file usize,
        ca_file usize, address usize);
    layout!("srdma_group_options", SrdmaGroupOptions: size usize, name usize, proxy usize, slot_octets u64, slots u32,
        path_mtu u32, digest u32, on_failure u32, stall_ms u32, min_receivers u32, slow_after_ms u32,
        window_octets u32, not_ready_ms u32, flags u32, more_slot_octets usize, more_regions u32, reserved u32);
    layout!("srdma_region", SrdmaRegion: base usize, length usize);
    layout!("srdma_join_options", SrdmaJoinOptions: size usize, base usize, length usize, runtime_directory usize,
        flags u32, reserved u32);
    layout!("srdma_buffer", SrdmaBuffer: name usize, base usize, length usize);
    layout!("srdma_event", SrdmaEvent: size usize, kind u32, error u32, version u64, message [u8; 128]);
    layout!("srdma_statistics", SrdmaStatistics: size usize, versions u64, octets u64, failed u64, waiting u64, slow u64,
        strays u64, packets_sent u64, packets_retransmitted u64, packets_acknowledged u64, timeouts u64, naks u64,
        rnr_naks u64, cnps u64, octets_received u64, duplicates u64);
    expected.insert(format!("version {}", srdma_capi::srdma_library_version()));
    assert_eq!(lines(&output), expected);
}

/// The header is C++, too.
#[test]
fn the_header_compiles_as_cpp() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("empty.cc");
    fs::write(&source, "#include <srdma.h>\nint main() { return (int)srdma_library_version(); }\n").expect("written");
    let include = format!("-I{}", file("include").display());
    run(Command::new("c++").args(["-std=c++11", "-Wall", "-Werror", "-fsyntax-only", &include]).arg(&source));
}
