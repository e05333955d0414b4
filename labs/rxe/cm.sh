#!/bin/sh
# Builds examples/rdma_cm.c, a program of librdmacm, with this machine's librdmacm-dev and libibverbs-dev, and puts it
# with its libraries into a directory for guests:
#
#   cm.sh DIR
#   srdma lab up figure1-cm-rxe --guest-files DIR
set -eu

[ $# = 1 ] || {
    echo "usage: cm.sh DIR" >&2
    exit 1
}
here=$(cd "$(dirname "$0")" && pwd)
directory=$1 libraries=$1/usr/lib/x86_64-linux-gnu
[ -e /usr/include/rdma/rdma_cma.h ] || {
    echo "cm.sh: no librdmacm; install with: apt-get install --no-install-recommends librdmacm-dev libibverbs-dev" >&2
    exit 1
}
mkdir -p "$directory/bin" "$libraries"
cc -O2 -Wall -Wextra -Werror -o "$directory/bin/rdma_cm" "$here/../../examples/rdma_cm.c" -lrdmacm -libverbs -lpthread
ldd "$directory/bin/rdma_cm" | sed -n 's/.* => \([^ ]*\) .*/\1/p' | while read -r library; do
    cp -L "$library" "$libraries/"
done
