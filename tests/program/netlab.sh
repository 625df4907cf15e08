#!/bin/sh
# Hosts on one machine (bench/netlab): they have names, addresses and the rate that was asked for, and
# nothing is left of them, however the run ends. Skipped where the machine allows no such hosts.
. "$(dirname "$0")/common.sh"

netlab="$tests/../bench/netlab/netlab.sh"
for tool in ip tc unshare taskset mpirun pgrep; do
  command -v "$tool" >/dev/null || {
    echo "skipped: no $tool"
    exit 77
  }
done
status=0
"$netlab" -- true >out 2>&1 || status=$?
if [ "$status" -eq 2 ]; then
  echo "skipped: $(cat out)"
  exit 77
fi
[ "$status" -eq 0 ] || fail "true ended with status $status"

# Nothing of run $1 is left: no namespace, which links and bridges live in, no process, no file.
expect_clean() {
  left=$(ip netns list | grep "^tessera-netlab-$1-" || :)
  [ -z "$left" ] || fail "namespaces left: $left"
  [ ! -e "${TMPDIR:-/tmp}/tessera-netlab-$1" ] || fail "files left"
  tries=0
  while pgrep -f "$folder/rank.sh" >/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || fail "processes left: $(pgrep -a -f "$folder/rank.sh")"
    sleep 0.1
  done
}

"$netlab" --hosts 3 --ranks-per-host 2 --rate 50mbit -- sh -c \
  'echo "$(hostname) $(ip -o -4 addr show dev eth0 | tr -s " " | cut -d " " -f 4) $(tc qdisc show dev eth0 | grep -o "rate [^ ]*")"' \
  >out 2>&1 || fail "three hosts"
sort out >sorted
for host in 1 2 3; do
  for rank in 1 2; do echo "netlab-$host 10.77.0.$host/24 rate 50Mbit"; done
done >expected
cmp -s expected sorted || fail "not three hosts of two ranks"

status=0
"$netlab" -- sh -c 'exit 3' >out 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "status $status instead of the command's 3"

# The process of a rank that does not end by itself.
cat >rank.sh <<'END'
#!/bin/sh
touch "$1-$(hostname)"
sleep 300
END
chmod +x rank.sh
for ended_by in TERM INT KILL; do
  # A shell ignores SIGINT in the background; through env it is as in the foreground.
  env --default-signal=INT "$netlab" -- "$folder/rank.sh" "$folder/up-$ended_by" >out 2>&1 &
  run=$!
  tries=0
  until [ -e "up-$ended_by-netlab-1" ] && [ -e "up-$ended_by-netlab-2" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "the ranks did not start"
    sleep 0.1
  done
  kill "-$ended_by" "$run"
  status=0
  wait "$run" || status=$?
  if [ "$ended_by" = KILL ]; then
    ip netns list | grep -q "^tessera-netlab-$run-" || fail "a killed run leaves its hosts"
    "$netlab" clean >out 2>&1 || fail "clean"
  else
    [ "$status" -gt 128 ] || fail "status $status after SIG$ended_by"
  fi
  expect_clean "$run"
done

for arguments in '--hosts 5 -- true' '--rate fast -- true' '--ranks-per-host 0 -- true' '--what -- true' '--'; do
  status=0
  "$netlab" $arguments >out 2>&1 || status=$?
  [ "$status" -eq 2 ] || fail "status $status instead of 2: $arguments"
  expect_says '^netlab: '
done
