//! The packages of libsrdma: the shared library, and what programs are built with.

use super::output;
use crate::tree::Tree;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package: its name, its line and text of description, and which installed files are in it.
struct Package {
    name: &'static str,
    section: &'static str,
    summary: &'static str,
    text: &'static str,
    has: fn(&Path) -> bool,
}

const PACKAGES: [Package; 2] = [
    Package {
        name: "libsrdma0",
        section: "libs",
        summary: "versions of buffers to multicast groups of RDMA receivers",
        text: concat!(
            " The host library of srdma: an application publishes versions of its buffers,\n",
            " and each receiver takes every version whole, in order and verified.\n"
        ),
        has: is_shared_library,
    },
    Package {
        name: "libsrdma-dev",
        section: "libdevel",
        summary: "header, static library and manual pages of libsrdma",
        text: " What C programs are built with that use the host library of srdma.\n",
        has: is_for_builds,
    },
];

/// `libsrdma.so.0` and the file that it is a link to.
fn is_shared_library(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libsrdma.so."))
}

fn is_for_builds(path: &Path) -> bool {
    !is_shared_library(path)
}

/// Builds the packages from the static library into a directory, with this time of all files, in seconds since 1970.
pub(super) fn packages(archive: &Path, into: &Path, time_s: u64) -> Result<Vec<PathBuf>> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let installed = into.join("libsrdma");
    if installed.exists() {
        fs::remove_dir_all(&installed)?;
    }
    let mut install = Command::new(Tree::root().join("crates/capi/install"));
    install.arg(archive).arg("/usr").env("DESTDIR", &installed).env("LIBRARIES", format!("lib/{triplet}"));
    output(&mut install)?;
    let shared = installed.join(format!("usr/lib/{triplet}/libsrdma.so.0"));
    let needed = needed(&output(Command::new("objdump").arg("-p").arg(&shared))?);
    let build = |package: &Package| package.build(&installed, into, (&architecture, &needed), time_s);
    PACKAGES.iter().map(build).collect()
}

/// The packages that the shared library depends on, from the symbol versions that it needs.
fn needed(dynamic: &str) -> String {
    let versions = dynamic.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    let numbers = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
    let newest = versions.max_by_key(|version| numbers(version)).unwrap_or("2.34");
    format!("libc6 (>= {newest}), libgcc-s1")
}

impl Package {
    fn build(
        &self,
        installed: &Path,
        into: &Path,
        (architecture, needed): (&str, &str),
        time_s: u64,
    ) -> Result<PathBuf> {
        let root = into.join(self.name);
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        for file in files(installed)?.iter().filter(|file| (self.has)(file)) {
            let to = root.join(file);
            fs::create_dir_all(to.parent().context("a file below the root")?)?;
            copy(&installed.join(file), &to)?;
        }
        let license = root.join(format!("usr/share/doc/{}", self.name));
        fs::create_dir_all(&license)?;
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(Tree::root().join(name), license.join(name))?;
        }
        fs::create_dir_all(root.join("DEBIAN"))?;
        fs::write(root.join("DEBIAN/control"), self.control(architecture, needed))?;
        let package = into.join(format!("{}.deb", self.name));
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(&root).arg(&package);
        // It gives later times of files as this one.
        output(dpkg.env("SOURCE_DATE_EPOCH", time_s.to_string()))?;
        Ok(package)
    }

    fn control(&self, architecture: &str, needed: &str) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let depends = match self.name {
            "libsrdma0" => needed.to_owned(),
            _ => format!("libsrdma0 (= {version})"),
        };
        format!(
            "Package: {}\nVersion: {version}\nArchitecture: {architecture}\nMulti-Arch: same\nSection: {}\n\
             Priority: optional\nMaintainer: The srdma authors <srdma@localhost>\nDepends: {depends}\n\
             Description: {}\n{}",
            self.name, self.section, self.summary, self.text
        )
    }
}

/// A copy of a file, or of a symbolic link, that all may read.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if fs::symlink_metadata(from)?.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
        return Ok(());
    }
    fs::copy(from, to)?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(to, permissions)?;
    Ok(())
}

/// All files below a directory, in order, relative to it.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if fs::symlink_metadata(&path)?.is_dir() {
                directories.push(path);
            } else {
                files.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A static library with one function of the interface.
    fn archive(directory: &Path) -> PathBuf {
        let (source, object, archive) = (directory.join("a.c"), directory.join("a.o"), directory.join("a.a"));
        fs::write(&source, "#include <stdio.h>\nint srdma_open(void) { return puts(\"x\"); }\n").unwrap();
        output(Command::new("cc").args(["-c", "-fPIC", "-o"]).arg(&object).arg(&source)).unwrap();
        output(Command::new("ar").arg("rcs").arg(&archive).arg(&object)).unwrap();
        archive
    }

    #[test]
    fn the_packages_have_library_header_and_pages_once_each() {
        let directory = tempfile::tempdir().unwrap();
        let built = packages(&archive(directory.path()), directory.path(), 1_700_000_000).unwrap();
        let contents = |package: &PathBuf| output(Command::new("dpkg-deb").arg("--contents").arg(package)).unwrap();
        let [library, dev] = built.as_slice() else { panic!("{built:?}") };
        let names = |text: &str| -> Vec<String> {
            let files = text.lines().filter(|line| !line.starts_with('d'));
            files.map(|line| line.split(" ./").nth(1).unwrap().split(" -> ").next().unwrap().to_owned()).collect()
        };
        let (library, dev) = (contents(library), contents(dev));
        let (of_library, of_dev) = (names(&library), names(&dev));
        let ends = |files: &[String], end: &str| files.iter().filter(|file| file.ends_with(end)).count();
        assert_eq!((ends(&of_library, "linux-gnu/libsrdma.so.0"), of_library.len()), (1, 4), "{library}");
        for end in ["include/srdma.h", "/libsrdma.a", "/libsrdma.so", "pkgconfig/srdma.pc", "man3/srdma_open.3"] {
            assert_eq!(ends(&of_dev, end), 1, "{end}: {dev}");
        }
        assert!(of_library.iter().all(|file| !of_dev.contains(file)), "{library}{dev}");
        assert!(library.lines().all(|line| line.contains(" root/root ")), "{library}");
        let field =
            |place: usize, name| output(Command::new("dpkg-deb").arg("--field").arg(&built[place]).arg(name)).unwrap();
        assert!(field(0, "Depends").starts_with("libc6 (>= 2."), "{}", field(0, "Depends"));
        assert_eq!(field(1, "Depends"), format!("libsrdma0 (= {})", env!("CARGO_PKG_VERSION")));
        let pkg_config = directory.path().join("libsrdma-dev/usr/lib");
        let pc = files(&pkg_config).unwrap().into_iter().find(|file| file.ends_with("srdma.pc")).unwrap();
        let pc = fs::read_to_string(pkg_config.join(pc)).unwrap();
        assert!(pc.contains("prefix=/usr\nlibdir=${prefix}/lib/") && pc.contains("linux-gnu\n"), "{pc}");
    }

    #[test]
    fn the_newest_version_of_glibc_is_needed() {
        let dynamic = "  0x0d 0x00 02 GLIBC_2.9\n  0x06 0x00 03 GLIBC_2.34\n  0x06 0x00 04 GLIBC_2.4\n";
        assert_eq!(needed(dynamic), "libc6 (>= 2.34), libgcc-s1");
    }
}
