//! Lists: what is scanned, what is refused, and how chunks cover files.

use proptest::prelude::*;
use srdma_directory::{Error, FileList, ListError};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn list(files: &[(&str, u64)]) -> String {
    let files: Vec<String> =
        files.iter().map(|(path, octets)| format!(r#"{{"path":"{path}","octets":{octets}}}"#)).collect();
    format!(r#"{{"format":1,"chunk_octets":4096,"files":[{}]}}"#, files.join(","))
}

#[test]
fn a_directory_is_scanned_in_the_order_of_its_paths() {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir_all(at("b/empty")).unwrap();
    fs::write(at("b/tool"), [1; 10]).unwrap();
    fs::set_permissions(at("b/tool"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("a.bin"), [2; 5000]).unwrap();
    symlink("../a.bin", at("b/link")).unwrap();
    let found = FileList::scan(directory.path(), 4096).unwrap();
    let files: Vec<_> =
        found.files().iter().map(|file| (file.path.as_str(), file.octets, file.is_executable)).collect();
    assert_eq!(files, [("a.bin", 5000, false), ("b/link", 5000, false), ("b/tool", 10, true)]);
    assert_eq!(found.empty_directories(), ["b/empty"]);
    assert_eq!((found.total_octets(), found.chunks(), found.octets_of(2)), (10_010, 3, 10_010 - 2 * 4096));
    assert_eq!(FileList::parse(found.octets()), Ok(found));
}

/// D181.
#[test]
fn what_cannot_be_sent_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    symlink("sub", directory.path().join("loop")).unwrap();
    let error = FileList::scan(directory.path(), 4096).unwrap_err();
    assert!(matches!(&error, Error::LinkToDirectory(path) if path.ends_with("loop")), "{error}");
    fs::remove_file(directory.path().join("loop")).unwrap();
    symlink("nowhere", directory.path().join("broken")).unwrap();
    let error = FileList::scan(directory.path(), 4096).unwrap_err().to_string();
    assert!(error.contains("broken") && error.contains("No such file"), "{error}");
    let error = FileList::scan(&directory.path().join("missing"), 4096).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}

/// D181.
#[test]
fn paths_that_leave_the_directory_are_refused() {
    for path in ["/etc/passwd", "../up", "a/../../up", "a//b", "a/./b", "", "a/", "..", "a\\u0000b"] {
        let refused = FileList::parse(list(&[(path, 1)]).as_bytes());
        assert!(matches!(refused, Err(ListError::Path(_))), "{path:?}: {refused:?}");
    }
    for files in [[("b", 1), ("a", 1)], [("a", 1), ("a", 2)], [("a", 1), ("a/b", 1)]] {
        let refused = FileList::parse(list(&files).as_bytes());
        assert!(matches!(refused, Err(ListError::Order(_))), "{files:?}: {refused:?}");
    }
    let long = "x/".repeat(3000) + "x";
    assert!(matches!(FileList::parse(list(&[(&long, 1)]).as_bytes()), Err(ListError::Path(_))));
    let octets = [("a", u64::MAX), ("b", u64::MAX)];
    assert_eq!(FileList::parse(list(&octets).as_bytes()), Err(ListError::TooLong));
    let form = list(&[]).replace("\"format\":1", "\"format\":2");
    assert_eq!(FileList::parse(form.as_bytes()), Err(ListError::Format(2)));
    let chunks = list(&[]).replace("4096", "1");
    assert_eq!(FileList::parse(chunks.as_bytes()), Err(ListError::ChunkOctets(1)));
    assert!(matches!(FileList::parse(b"{}"), Err(ListError::Json(_))));
}

proptest! {
    /// The pieces of all chunks, one behind the other, are all files, one behind the other.
    #[test]
    fn pieces_cover_every_file_once(lengths in prop::collection::vec(prop_oneof![Just(0_u64), 1_u64..20_000], 0..12)) {
        let names: Vec<String> = (0..lengths.len()).map(|index| format!("{index:02}")).collect();
        let files: Vec<(&str, u64)> = names.iter().map(String::as_str).zip(lengths.iter().copied()).collect();
        let list = FileList::parse(list(&files).as_bytes()).unwrap();
        let mut covered = vec![0_u64; lengths.len()];
        for chunk in 0..list.chunks() {
            let mut at = 0;
            for piece in list.pieces(chunk) {
                prop_assert_eq!((piece.chunk_offset, piece.file_offset), (at, covered[piece.file]));
                prop_assert!(piece.octets > 0);
                at += piece.octets;
                covered[piece.file] += piece.octets as u64;
            }
            prop_assert_eq!(at as u64, list.octets_of(chunk));
        }
        prop_assert_eq!(covered, lengths);
        prop_assert_eq!(list.pieces(list.chunks()), vec![]);
    }

    #[test]
    fn no_octets_are_taken_for_a_list_by_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = FileList::parse(&octets);
    }
}
