//! The example `loopback` in a soft-RoCE guest: the kernel and libibverbs of Debian 12, emulated by QEMU.

use srdma_capture::Reader;
use srdma_wire::rocev2::Packet;
use srdma_wire::{EthernetView, MacAddress, Opcode, Psn, View};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends QEMU when the guest does not: on two processors without other work it takes half a minute.
const PATIENCE: Duration = Duration::from_secs(240);

/// Runs beside the image's own init, once there is an RDMA device; ends the guest.
const INIT: &str = "#!/bin/busybox sh
export PATH=/bin
# A process in the background reads /dev/null.
/bin/busybox mount -t devtmpfs devtmpfs /dev
/init &
until /bin/busybox grep -qs ACTIVE /sys/class/infiniband/rxe0/ports/1/state; do /bin/busybox sleep 0.2; done
loopback 2001:db8::1
echo \"EXIT loopback $?\"
chmod 666 /dev/infiniband/uverbs0
ulimit -l 64
start-stop-daemon -S -c user -x /bin/loopback -- 2001:db8::1 locked
echo \"EXIT locked $?\"
poweroff -f
";

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command line; its standard output.
fn run(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Packages that were downloaded before, by labs or by this test.
fn packages() -> PathBuf {
    let cache = std::env::var_os("SRDMA_CACHE").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/srdma");
    cache.unwrap_or_else(home).join("rxe/packages")
}

/// Builds kernel and initial RAM disk of guests; their directory.
fn image(directory: &Path) -> PathBuf {
    let out = directory.join("image");
    let script = root().join("labs/rxe/build.sh");
    run(Command::new("sh").arg(script).arg("build").args([&out, &packages()]));
    out
}

/// The example, which cargo has built beside this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let profile = test.parent().and_then(Path::parent).expect("a directory of the profile");
    profile.join("examples/loopback")
}

/// The image's RAM disk and after it a second archive: the kernel unpacks both.
fn initrd(directory: &Path, image: &Path) -> PathBuf {
    let files = directory.join("files");
    let libraries = files.join("usr/lib/x86_64-linux-gnu");
    fs::create_dir_all(files.join("bin")).expect("a directory");
    fs::create_dir_all(&libraries).expect("a directory");
    run(Command::new("strip").arg("-o").arg(files.join("bin/loopback")).arg(example()));
    fs::copy("/lib/x86_64-linux-gnu/libgcc_s.so.1", libraries.join("libgcc_s.so.1")).expect("libgcc_s.so.1");
    fs::create_dir_all(files.join("etc")).expect("a directory");
    fs::write(files.join("etc/passwd"), "user:x:1000:1000::/tmp:/bin/sh\n").expect("a file");
    fs::write(files.join("verbs-init"), INIT).expect("a file");
    fs::set_permissions(files.join("verbs-init"), Permissions::from_mode(0o755)).expect("a mode");
    let archive = directory.join("files.cpio");
    let line = format!("find . | cpio --quiet -o -H newc -R 0:0 >'{}'", archive.display());
    run(Command::new("sh").args(["-ec", &line]).current_dir(&files));

    let initrd = directory.join("initrd");
    let parts = [image.join("initramfs.cpio"), archive].map(|path| fs::read(path).expect("an archive"));
    fs::write(&initrd, parts.concat()).expect("the RAM disk");
    initrd
}

/// Boots a guest and waits for its end; its console's output.
fn boot(directory: &Path) -> String {
    let image = image(directory);
    let console = directory.join("console");
    // The options are explained in crates/lab/src/guest/mod.rs. At the other end of the network QEMU itself takes the
    // frames, and sends nothing on.
    let line = "-nodefaults -no-user-config -no-reboot -machine pc,usb=off -accel tcg -cpu max -smp 1 -m 256 \
                -display none -netdev user,id=network,restrict=on -device virtio-net-pci,netdev=network,romfile=";
    let kernel_line = "console=ttyS0 quiet panic=-1 mitigations=off cryptomgr.notests nokaslr tsc=unstable \
                       noapictimer no_timer_check rdinit=/verbs-init host=verbs addresses=2001:db8::1/64";
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(line.split_whitespace()).args(["-append", kernel_line]);
    let capture = directory.join("capture.pcap");
    qemu.arg("-object").arg(format!("filter-dump,id=dump,netdev=network,file={}", capture.display()));
    qemu.arg("-serial").arg(format!("file:{}", console.display()));
    qemu.arg("-kernel").arg(image.join("vmlinux")).arg("-initrd").arg(initrd(directory, &image));
    let mut guest = Ended(qemu.stdin(Stdio::null()).spawn().expect("QEMU starts"));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let output = fs::read_to_string(&console).unwrap_or_default();
        if guest.0.try_wait().expect("a state").is_some() {
            return fs::read_to_string(&console).unwrap_or_default();
        }
        assert!(Instant::now() < deadline, "the guest has not ended in time:\n{output}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "needs root"]
fn queue_pairs_of_soft_roce_transfer_octets_and_name_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let console = boot(directory.path());
    println!("{console}");
    for line in ["EXIT loopback 0", "EXIT locked 0"] {
        assert!(console.lines().any(|text| text.trim_end() == line), "no {line:?} in:\n{console}");
    }
    check_capture(&directory.path().join("capture.pcap"));
    assert!(console.contains("wrong rkey: remote access error (RemoteAccess, "), "{console}");
    assert!(console.contains("RLIMIT_MEMLOCK, of 65536 octets"), "{console}");
}

/// Packets of the example to a host that does not exist, as the kernel has made them from the queue pair's attributes:
/// a WRITE with immediate of 3,000 octets, sent again and again. (Those of connected queue pairs stay in the kernel.)
fn check_capture(path: &Path) {
    let mut opcodes: BTreeMap<u32, Opcode> = BTreeMap::new();
    for frame in Reader::open(path).expect("a capture") {
        let octets = frame.expect("a frame").octets;
        let (ethernet, packet) = EthernetView::split(&octets).expect("an Ethernet header");
        // Neighbour discovery is the rest.
        let Ok(packet) = Packet::parse(packet, packet.len()) else { continue };
        assert_eq!(ethernet.value().destination, MacAddress([2, 0, 0, 0, 0, 0x99]));
        let (ipv6, bth) = (packet.ipv6, packet.bth.value());
        assert_eq!(ipv6.destination(), "2001:db8::99".parse::<std::net::Ipv6Addr>().unwrap());
        assert_eq!(ipv6.source(), "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap());
        // The hop limit is that of the route, not of the queue pair.
        assert_eq!((ipv6.traffic_class(), ipv6.hop_limit, bth.dest_qpn.get()), (0x68, 33, 0xab_cdef));
        opcodes.insert(bth.psn.get(), bth.opcode);
        let sent_before = bth.psn.distance_from(Psn::new(0xff_fffe)) as usize * 1024;
        let payload = packet.payload().expect("in one piece");
        assert!(payload.iter().zip(sent_before..).all(|(octet, i)| usize::from(*octet) == i % 251), "{bth:?}");
        if let Some(reth) = packet.extended.reth() {
            let reth = reth.value();
            assert_eq!((reth.virtual_address, reth.rkey), (0x1122_3344_5566_7788, 0x99aa_bbcc));
            assert_eq!(reth.dma_length, 3000);
        }
        if bth.opcode == Opcode::WRITE_LAST_IMMEDIATE {
            assert_eq!(packet.extended.octets()[0], [1, 2, 3, 4]);
        }
    }
    // PSNs 0xfffffe, 0xffffff and 0.
    let expected =
        [(0, Opcode::WRITE_LAST_IMMEDIATE), (0xff_fffe, Opcode::WRITE_FIRST), (0xff_ffff, Opcode::WRITE_MIDDLE)];
    assert_eq!(opcodes, BTreeMap::from(expected));
}

/// The header of the package that the image is made from, printed by a C compiler, beside the committed layout.
#[test]
#[ignore = "needs root"]
fn the_committed_layout_is_that_of_the_package() {
    let directory = tempfile::tempdir().expect("a directory");
    run(Command::new("apt-get").args(["-q", "download", "libibverbs-dev"]).current_dir(&directory));
    run(Command::new("sh").args(["-ec", "dpkg-deb -x libibverbs-dev_*.deb system"]).current_dir(&directory));
    let script = root().join("tools/verbs/layout.sh");
    let printed = run(Command::new("sh").arg(script).arg(directory.path().join("system/usr/include")));
    let committed = fs::read_to_string(root().join("testdata/verbs/layout-44.txt")).expect("the layout");
    assert_eq!(printed, committed);
}
