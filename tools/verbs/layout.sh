#!/bin/sh
# Prints the sizes, offsets and constants of an infiniband/verbs.h, as testdata/verbs has them.
#
#   layout.sh [INCLUDE-DIRECTORY]
#
# Without an argument the header is the one of the package libibverbs-dev, if that is installed. Needs a C compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=$(mktemp)
trap 'rm -f "$program"' EXIT
cc ${1:+-I"$1"} -o "$program" "$here/layout.c"
"$program"
