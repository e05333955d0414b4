#!/bin/sh
# Builds what a soft-RoCE guest boots, a kernel and an initial RAM disk, from Debian 12 packages. The packages are
# downloaded and unpacked; nothing is installed, and root is not needed.
#
#   build.sh list              prints the file names of the packages, with their versions
#   build.sh build OUT DEBS    builds OUT/vmlinux and OUT/initramfs.cpio; DEBS keeps the packages for the next time
#
# init and peer.c lie beside this script. The same packages give the same octets.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
libraries=usr/lib/x86_64-linux-gnu
apt="-q -o APT::Sandbox::User=root"

# With busybox, iproute2 (ip, rdma) and libibverbs go into the guest, with what they are linked to.
packages="busybox-static iproute2 libibverbs1 libibverbs-dev ibverbs-providers libnl-3-200 libnl-route-3-200 libmnl0
libbpf1 libelf1 libcap2 libbsd0 libmd0 libtirpc3 zlib1g libc6"
# crc32_generic computes the ICRC; by algif_hash programs have the kernel hash.
modules="virtio_pci virtio_net virtio_console crc32_generic algif_hash 8021q ib_uverbs rdma_ucm rdma_rxe"

fail() {
    echo "build.sh: $*" >&2
    exit 1
}

list() {
    kernel=$(apt-cache depends linux-image-amd64 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -n "$kernel" ] || fail "apt knows no package linux-image-amd64; run: apt-get update (on Debian 12, amd64)"
    # shellcheck disable=SC2086 # lists of words
    uris=$(apt-get $apt --print-uris download "$kernel" $packages) ||
        fail "apt does not know every package; run: apt-get update"
    echo "$uris" | awk '/^\x27/ { print $2 }'
}

build() {
    out=$1 debs=$2
    packages_listed=$(list)
    work=$out/work system=$out/work/system root=$out/work/root
    rm -rf "$work"
    mkdir -p "$debs" "$system" "$root"
    download
    echo "unpacking packages"
    for package in $packages_listed; do
        dpkg-deb -x "$debs/$package" "$system"
    done
    version=$(basename "$system"/boot/vmlinuz-*)
    version=${version#vmlinuz-}
    echo "making a guest of Linux $version"
    make_kernel
    make_root
    make_modules
    make_archive
    rm -rf "$work"
}

download() {
    missing=
    for package in $packages_listed; do
        # File names are NAME_VERSION_ARCHITECTURE.deb.
        [ -s "$debs/$package" ] || missing="$missing ${package%%_*}"
    done
    [ -n "$missing" ] || return 0
    echo "downloading$missing"
    # shellcheck disable=SC2086
    (cd "$debs" && apt-get $apt download $missing >/dev/null) || fail "cannot download$missing; is there a network?"
}

# A bzImage holds the kernel as a compressed ELF file. QEMU boots that directly if it is not compressed, and
# decompression would be the slowest part of an emulated boot.
make_kernel() {
    image=$system/boot/vmlinuz-$version
    offset=$(LC_ALL=C grep -abo -m 1 -P '\xFD7zXZ\x00' "$image" | head -n 1 | cut -d : -f 1)
    [ -n "$offset" ] || fail "$image is not compressed with xz, as kernels of Debian 12 are"
    tail -c "+$((offset + 1))" "$image" | xz -dc --single-stream >"$out/vmlinux" || fail "cannot unpack $image"
}

make_root() {
    mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/lib" "$root/lib64" \
        "$root/etc/libibverbs.d" "$root/$libraries/libibverbs"
    ln -s ../usr/lib/x86_64-linux-gnu "$root/lib/x86_64-linux-gnu"
    cp "$here/init" "$root/init"
    chmod 755 "$root/init"
    cp "$system/bin/busybox" "$system/bin/ip" "$system/usr/bin/rdma" "$root/bin/"
    cp "$system/etc/libibverbs.d/rxe.driver" "$root/etc/libibverbs.d/"
    cp "$system/$libraries"/libibverbs/librxe-rdmav*.so "$root/$libraries/libibverbs/"
    cp -L "$system/lib64/ld-linux-x86-64.so.2" "$root/lib64/"
    gcc -O2 -Wall -Wextra -Werror -o "$root/bin/peer" "$here/peer.c" -I"$system/usr/include" -L"$system/$libraries" \
        -Wl,-rpath-link,"$system/$libraries" -Wl,--build-id=none -libverbs || fail "gcc cannot compile peer.c"
    # Libraries need libraries: until nothing is missing.
    while copy_libraries; do :; done
}

# Copies the libraries that something in the guest needs and does not have; whether there were any.
copy_libraries() {
    copied=false
    for library in $(find "$root/bin" "$root/$libraries" -type f ! -name busybox -exec objdump -p {} + 2>/dev/null |
        sed -n 's/^ *NEEDED *//p' | sort -u); do
        [ -e "$root/$libraries/$library" ] || [ -e "$root/lib64/$library" ] && continue
        cp -L "$system/$libraries/$library" "$root/$libraries/" 2>/dev/null ||
            cp -L "$system/lib/x86_64-linux-gnu/$library" "$root/$libraries/" || fail "no package has $library"
        copied=true
    done
    $copied
}

# The modules and what they depend on, in one directory, and the order to load them in.
make_modules() {
    mkdir "$root/lib/modules"
    : >"$root/lib/modules/order"
    "$system/bin/busybox" depmod -b "$system" "$version"
    for module in $modules; do
        add_module "$module"
    done
}

add_module() {
    pattern=$(echo "$1" | sed 's/[-_]/[-_]/g')
    line=$(grep -E "(^|/)$pattern\.ko:" "$system/lib/modules/$version/modules.dep") || fail "$version has no module $1"
    file=$(basename "${line%%:*}")
    grep -qx "$file" "$root/lib/modules/order" && return
    for dependency in ${line#*:}; do
        (add_module "$(basename "$dependency" .ko)")
    done
    find "$system/lib/modules/$version" -name "$file" -exec cp {} "$root/lib/modules/" \;
    echo "$file" >>"$root/lib/modules/order"
}

make_archive() {
    find "$root" -exec touch -h -d @0 {} +
    (cd "$root" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0 --reproducible) >"$out/initramfs.cpio"
}

case "$#:${1:-}" in
1:list) list ;;
3:build) build "$2" "$3" ;;
*) fail "usage: build.sh list | build.sh build OUT DEBS" ;;
esac
