//! The status socket.

use super::example;
use srdma_node::daemon::{Latest, Snapshot, StatusServer, read_status};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn bind(runtime: &Runtime, path: &Path) -> Result<StatusServer, String> {
    runtime.block_on(StatusServer::bind(path)).map_err(|error| error.to_string())
}

#[test]
fn each_connection_gets_the_newest_snapshot() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let path = directory.path().join("run").join("n6.sock");
    let server = bind(&runtime, &path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    let (sender, receiver) = watch::channel(Latest::new(example()));
    let task = runtime.spawn(server.serve(receiver));
    assert_eq!(read_status(&path).unwrap(), example());
    let later = Snapshot { uptime_ns: 91_000_000_000, ..example() };
    sender.send(Latest::new(later.clone())).unwrap();
    assert_eq!(read_status(&path).unwrap(), later);
    task.abort();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    assert!(!path.exists());
}

#[test]
fn many_silent_connections_block_no_client() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let path = directory.path().join("n6.sock");
    let server = bind(&runtime, &path).unwrap();
    let (_sender, receiver) = watch::channel(Latest::new(example()));
    runtime.spawn(server.serve(receiver));
    let idle: Vec<_> = (0..40).map(|_| std::os::unix::net::UnixStream::connect(&path).unwrap()).collect();
    assert_eq!(read_status(&path).unwrap(), example());
    drop(idle);
}

#[test]
fn a_live_socket_is_refused_and_a_stale_one_replaced() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let path = directory.path().join("n6.sock");
    let server = bind(&runtime, &path).unwrap();
    let error = bind(&runtime, &path).unwrap_err();
    assert!(error.contains("n6.sock: another node is running and answers here"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    drop(server);
    // A socket outlives its listener unless it is removed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let error = read_status(&path).unwrap_err().to_string();
    assert!(error.contains("the one that made the socket is gone"), "{error}");
    drop(bind(&runtime, &path).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_server_leaves_the_socket_of_its_successor() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let path = directory.path().join("n6.sock");
    let first = bind(&runtime, &path).unwrap();
    fs::remove_file(&path).unwrap();
    let second = bind(&runtime, &path).unwrap();
    drop(first);
    assert!(path.exists());
    drop(second);
}

#[test]
fn a_file_that_is_no_socket_is_kept() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let path = directory.path().join("n6.sock");
    fs::write(&path, "mine").unwrap();
    let error = bind(&runtime, &path).unwrap_err();
    assert!(error.contains("exists and is no socket"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn without_a_node_the_error_has_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let error = read_status(&directory.path().join("none.sock")).unwrap_err().to_string();
    assert!(error.contains("none.sock: no node answers") && error.contains("srdma node --config"), "{error}");
}
