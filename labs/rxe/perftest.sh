#!/bin/sh
# Puts ib_write_bw and ib_send_bw of this machine (Debian's package perftest), unmodified, into a directory for guests:
#
#   perftest.sh DIR
#   srdma lab up figure1-controller-rxe --guest-files DIR
#
# perftest of Debian 12 connects its TCP over IPv4 alone, and guests have IPv6. So there are two programs more in DIR,
# by which a guest passes it on:
#
#   perftest-server TOOL OPTIONS               a server, reached at port 18516
#   perftest-client HOST PORT TOOL OPTIONS     a client of the server, or of srdma perftest, at that port
set -eu

[ $# = 1 ] || {
    echo "usage: perftest.sh DIR" >&2
    exit 1
}
directory=$1 libraries=$1/usr/lib/x86_64-linux-gnu
mkdir -p "$directory/bin" "$libraries"
for tool in ib_write_bw ib_send_bw; do
    path=$(command -v $tool) || {
        echo "perftest.sh: no $tool; install with: apt-get install --no-install-recommends perftest" >&2
        exit 1
    }
    strip -o "$directory/bin/$tool" "$path"
    ldd "$path" | sed -n 's/.* => \([^ ]*\) .*/\1/p' | while read -r library; do
        cp -L "$library" "$libraries/"
    done
done

# 18515 is 4853 in hexadecimal.
cat >"$directory/bin/perftest-server" <<'END'
#!/bin/sh
"$@" &
tool=$!
until grep -q ' 00000000:4853 ' /proc/net/tcp; do
    [ -d /proc/$tool ] || exit 1
    usleep 50000
done
nc -l -p 18516 -e nc 127.0.0.1 18515 </dev/null >/dev/null 2>&1 &
wait $tool
status=$?
kill %2 2>/dev/null
exit $status
END
cat >"$directory/bin/perftest-client" <<'END'
#!/bin/sh
host=$1 port=$2
shift 2
nc -l -p 18515 -e nc "$host" "$port" </dev/null >/dev/null 2>&1 &
until grep -q ':4853 ' /proc/net/tcp6; do usleep 50000; done
"$@" 127.0.0.1
status=$?
kill %1 2>/dev/null
exit $status
END
chmod 755 "$directory/bin/perftest-server" "$directory/bin/perftest-client"
