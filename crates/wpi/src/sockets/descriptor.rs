//! `BUFFER.sock`: the client says `GPU=0`, and gets `OK` and the descriptor of the buffer.

use super::{PATIENCE, accept};
use crate::memory::Memory;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Connections of a buffer at a time; further ones are closed.
const MAX_CONNECTIONS: usize = 64;
/// Octets of a client's line at most.
const MAX_LINE_OCTETS: usize = 64;

/// Passes the descriptor of a buffer to each client.
pub(crate) async fn pass(listener: UnixListener, memory: Arc<Memory>, what: String) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let stream = accept(&listener, &what).await;
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else { continue };
        let (memory, what) = (Arc::clone(&memory), what.clone());
        tokio::spawn(async move {
            let _permit = permit;
            match timeout(PATIENCE, answer(stream, &memory)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!("{what}: {error}"),
                Err(_) => tracing::warn!("{what}: a client has said nothing for {PATIENCE:?}"),
            }
        });
    }
}

async fn answer(mut stream: UnixStream, memory: &Memory) -> io::Result<()> {
    let mut line = [0; MAX_LINE_OCTETS];
    let mut length = 0;
    while length < line.len() && !line[..length].contains(&b'\n') {
        match stream.read(&mut line[length..]).await? {
            0 => break,
            read => length += read,
        }
    }
    match parse(&line[..length]) {
        Ok(()) => send(&stream, memory).await,
        Err(refusal) => {
            stream.write_all(format!("ERROR {refusal}\n").as_bytes()).await?;
            Err(io::Error::other(refusal))
        }
    }
}

/// The first line: clients of GPUs say which one they want. Those that want none say 0.
fn parse(octets: &[u8]) -> Result<(), String> {
    let line = octets.split(|octet| *octet == b'\n').next().unwrap_or_default().trim_ascii();
    let number = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix("GPU=")?.parse::<u32>().ok());
    match number {
        Some(0) => Ok(()),
        Some(gpu) => Err(crate::core::Refusal::Gpu(gpu.into()).to_string()),
        None => Err("expected the line GPU=0".to_owned()),
    }
}

async fn send(stream: &UnixStream, memory: &Memory) -> io::Result<()> {
    let descriptors = [memory.as_fd().as_raw_fd()];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let send = || {
        let rights = [ControlMessage::ScmRights(&descriptors)];
        match sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(b"OK\n")], &rights, flags, None) {
            Ok(_) => Ok(()),
            Err(Errno::EAGAIN | Errno::EINTR) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    };
    stream.async_io(Interest::WRITABLE, send).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_refused_by_name() {
        for good in [&b"GPU=0\n"[..], b"GPU=0", b" GPU=0\r\nmore"] {
            assert_eq!(parse(good), Ok(()));
        }
        let gpu = parse(b"GPU=3\n").expect_err("refused");
        assert!(gpu.starts_with("GPU 3: this driver has memory of the host alone"), "{gpu}");
        for bad in [&b""[..], b"\n", b"GPU=", b"GPU=-1\n", b"GPU=x", b"gpu=0", b"\xff\xff", &[b'G'; 64]] {
            assert_eq!(parse(bad).expect_err("refused"), "expected the line GPU=0");
        }
    }
}
