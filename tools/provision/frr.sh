#!/bin/sh -e
# Unpacks FRR of Debian 13 (10.3), with the libraries that it needs, into DIRECTORY/root, for the tests of
# `srdma plan provision --format frr`. Packages come from the mirror that this machine's apt uses; nothing is installed.
#
#     tools/provision/frr.sh DIRECTORY [SUITE]
#     chroot DIRECTORY/root /usr/bin/vtysh -C -f FILE
directory=$(realpath -m "${1:?usage: $0 DIRECTORY [SUITE]}")
suite=${2:-trixie}
mirror=$(apt-get indextargets --format '$(SITE)' 'Identifier: Packages' 'Origin: Debian' | sort -u | head -1)
apt="$directory/apt"
root="$directory/root"
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts"
: > "$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$apt/sources.list"
own() {
    apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$apt/sources.list" \
        -o Dir::Etc::SourceParts="$apt/parts" -o Dir::Etc::PreferencesParts="$apt/parts" \
        -o Dir::State::Lists="$apt/lists" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt" "$@"
}
own update
own install --yes --no-install-recommends --download-only frr libpam-modules
for part in bin sbin lib lib64; do
    mkdir -p "$root/usr/$part"
    ln -sfn "usr/$part" "$root/$part"
done
for package in "$apt"/archives/*.deb; do
    dpkg -x "$package" "$root"
done
# No script of a package has run: these are the accounts and the rights that daemons and vtysh look for.
mkdir -p "$root/proc" "$root/run" "$root/tmp" "$root/var/lib/frr" "$root/var/tmp" "$root/etc/frr" "$root/etc/pam.d"
ln -sfn ../run "$root/var/run"
printf 'root:x:0:0:root:/root:/bin/sh\nfrr:x:102:102::/:/bin/false\n' > "$root/etc/passwd"
printf 'root:x:0:\nfrrvty:x:101:root,frr\nfrr:x:102:\n' > "$root/etc/group"
printf 'auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n' > "$root/etc/pam.d/frr"
cp "$root/etc/pam.d/frr" "$root/etc/pam.d/other"
: > "$root/etc/frr/vtysh.conf"
chroot "$root" /usr/bin/vtysh --help | grep 'FRR (version'
