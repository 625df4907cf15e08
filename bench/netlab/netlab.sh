#!/bin/bash
# A slow network of several hosts on one machine: each host is a network namespace with a name of its
# own and a share of the cores, joined by a bridge over links of limited rate. Runs a command on them
# under Open MPI, whose messages go by TCP over these links.
#
#   netlab.sh [--hosts N] [--ranks-per-host R] [--rate RATE] [--delay TIME] -- COMMAND …
#   netlab.sh clean      removes what a run that was killed has left behind
#
#   --hosts 2 … 4        [2]
#   --ranks-per-host R   [1]
#   --rate RATE          of each host's link, each way, as tc has it: 200mbit, 1gbit  [1gbit]
#   --delay TIME         one way, as 1ms; where the kernel has netem
#
#   bench/netlab/netlab.sh --rate 200mbit -- build/tessera bench comm -b 8 -e 8M
#
# Needs root, ip and tc (iproute2), unshare (util-linux), mpirun. The exit status is mpirun's. What it
# has made is gone when it ends, also when it is interrupted.
set -u

self=$(realpath "$0")
prefix=tessera-netlab

say() { echo "netlab: $*" >&2; }
die() {
  say "$*"
  exit 2
}
usage() { sed -n '2,/^set -u/{/^set -u/d;s/^# \{0,1\}//;p}' "$self"; }

# Namespace of host i (1 …) or of the bridge (0) of the run with id $1.
namespace() { echo "$prefix-$1-$2"; }

# Ends what runs in a namespace and removes it; its ends of links, and so the links, go with it.
remove_namespace() {
  local tries pids
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    pids=$(ip netns pids "$1" 2>/dev/null) || true
    [ -n "$pids" ] || break
    if [ "$tries" -lt 4 ]; then kill -TERM $pids 2>/dev/null; else kill -KILL $pids 2>/dev/null; fi
    sleep 0.2
  done
  ip netns delete "$1"
}

remove_run() {
  local name
  for name in $(ip netns list 2>/dev/null | cut -d ' ' -f 1 | grep "^$prefix-$1-"); do
    remove_namespace "$name"
  done
  rm -rf "${TMPDIR:-/tmp}/$prefix-$1"
}

# Removes every run whose process is gone.
clean() {
  local id left
  left=$(ip netns list | cut -d ' ' -f 1 | sed -n "s/^$prefix-\([0-9]*\)-[0-9]*$/\1/p"
    ls "${TMPDIR:-/tmp}" | sed -n "s/^$prefix-\([0-9]*\)$/\1/p")
  for id in $(echo "$left" | sort -u); do
    if [ -d "/proc/$id" ] && grep -q "netlab" "/proc/$id/cmdline"; then
      say "process $id still uses its hosts: left alone"
    else
      say "removing what process $id has left"
      remove_run "$id"
    fi
  done
}

# enter NAME COMMAND …: what Open MPI calls in place of ssh. The command is a line for a shell.
enter() {
  local host=${1#netlab-}
  shift
  local cores
  cores=$(sed -n "${host}p" "$NETLAB_FOLDER/cores")
  exec taskset -c "$cores" ip netns exec "$(namespace "$NETLAB_ID" "$host")" \
    unshare --uts sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "netlab-$host" "$@"
}

check_tools() {
  local tool
  [ "$(id -u)" -eq 0 ] || die "needs root, to make network namespaces"
  for tool in ip:iproute2 tc:iproute2 unshare:util-linux taskset:util-linux mpirun:openmpi-bin; do
    command -v "${tool%%:*}" >/dev/null || die "needs ${tool%%:*}: apt-get install ${tool#*:}"
  done
  local errors
  errors=$({ ip netns add "$prefix-$$-0" && ip -n "$prefix-$$-0" link add b0 type bridge; } 2>&1) ||
    die "cannot make a namespace with a bridge (in a container it needs --privileged, or the
        capabilities SYS_ADMIN and NET_ADMIN): $errors"
  ip -n "$prefix-$$-0" link set b0 up
}

# limit NAMESPACE DEVICE: what leaves by the device is no faster than the rate, and late.
limit() {
  # A burst of two milliseconds, and room for what TCP sends at once.
  local burst=$(($(rate_in_bits) / 8 / 500))
  [ "$burst" -ge 16384 ] || burst=16384
  local parent=root
  if [ -n "$delay" ]; then
    tc -n "$1" qdisc add dev "$2" root handle 1: netem delay "$delay" limit 100000 2>/dev/null &&
      parent="parent 1:"
  fi
  tc -n "$1" qdisc add dev "$2" $parent tbf rate "$rate" burst "$burst" latency 100ms ||
    die "cannot limit the rate to $rate: tc needs the kernel's tbf, and a rate as 200mbit"
}

rate_in_bits() {
  local number=${rate%%[!0-9]*}
  case ${rate#"$number"} in
    gbit) echo $((number * 1000000000)) ;;
    mbit) echo $((number * 1000000)) ;;
    kbit) echo $((number * 1000)) ;;
    *) echo 0 ;;
  esac
}

make_host() {
  local name switch
  name=$(namespace $$ "$1")
  switch=$(namespace $$ 0)
  ip netns add "$name" &&
    ip -n "$switch" link add "port$1" type veth peer name eth0 netns "$name" &&
    ip -n "$switch" link set "port$1" master b0 up &&
    ip -n "$name" addr add "10.77.0.$1/24" dev eth0 &&
    ip -n "$name" link set lo up &&
    ip -n "$name" link set eth0 up || die "cannot make host $1"
  limit "$name" eth0
  limit "$switch" "port$1"
}

# The cores of each host, a line each: shares of those this process may use, all where there are fewer
# cores than hosts.
deal_cores() {
  local allowed count each host
  allowed=$(taskset -cp $$ | sed 's/.*: //')
  allowed=$(echo "$allowed" | tr ',' '\n' | awk -F- '{ for (c = $1; c <= ($2 == "" ? $1 : $2); ++c) print c }')
  count=$(echo "$allowed" | wc -l)
  each=$((count / hosts))
  for host in $(seq "$hosts"); do
    if [ "$each" -gt 0 ]; then
      echo "$allowed" | sed -n "$(((host - 1) * each + 1)),$((host * each))p" | paste -sd,
    else
      echo "$allowed" | paste -sd,
    fi
  done
}

run() {
  local host
  for host in $(seq "$hosts"); do make_host "$host"; done
  if [ -n "$delay" ] && ! tc -n "$(namespace $$ 1)" qdisc show dev eth0 | grep -q netem; then
    say "this kernel has no netem: no delay is added"
  fi
  export NETLAB_ID=$$ NETLAB_FOLDER="${TMPDIR:-/tmp}/$prefix-$$"
  mkdir -m 700 "$NETLAB_FOLDER"  # not -p: nobody may have made it before
  deal_cores >"$NETLAB_FOLDER/cores"
  for host in $(seq "$hosts"); do echo "netlab-$host slots=$ranks"; done >"$NETLAB_FOLDER/hosts"

  # Open MPI 4 reads OMPI_MCA_…, the launcher of 5 PRTE_MCA_….
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_plm_rsh_agent="$self enter" PRTE_MCA_plm_ssh_agent="$self enter"
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=eth0
  export OMPI_MCA_oob_tcp_if_include=eth0 PRTE_MCA_prte_if_include=eth0
  export OMPI_MCA_btl_base_warn_component_unused=0

  local command
  command=$(printf '%q ' exec mpirun -n $((hosts * ranks)) --hostfile "$NETLAB_FOLDER/hosts" \
    --bind-to none "$@")
  "$self" enter netlab-1 "$command" </dev/null &
  mpirun=$!
  wait "$mpirun"
}

# A signal to this script: mpirun passes it on to the ranks, who have five seconds to take it.
stop() {
  local tries=0
  trap '' HUP INT TERM
  if [ -n "$mpirun" ]; then
    kill "-$1" "$mpirun" 2>/dev/null
    while kill -0 "$mpirun" 2>/dev/null && [ "$tries" -lt 25 ]; do
      tries=$((tries + 1))
      sleep 0.2
    done
  fi
  exit "$2"
}

hosts=2 ranks=1 rate=1gbit delay= mpirun=
case ${1-} in
  clean)
    check_tools
    remove_run $$
    clean
    exit
    ;;
  enter)
    shift
    enter "$@"
    ;;
esac
while [ $# -gt 0 ]; do
  case $1 in
    --hosts | --ranks-per-host | --rate | --delay)
      [ $# -gt 1 ] || die "$1 needs a value"
      case $1 in
        --hosts) hosts=$2 ;;
        --ranks-per-host) ranks=$2 ;;
        --rate) rate=$2 ;;
        --delay) delay=$2 ;;
      esac
      shift 2
      ;;
    --)
      shift
      break
      ;;
    -h | --help)
      usage
      exit
      ;;
    *) die "unknown: $1 (see --help)" ;;
  esac
done
[ $# -gt 0 ] || die "no command; see --help"
case $hosts in [234]) ;; *) die "--hosts $hosts: 2, 3 or 4" ;; esac
case $ranks in '' | 0* | *[!0-9]*) die "--ranks-per-host $ranks: a number from 1" ;; esac
[ "$(rate_in_bits)" -gt 0 ] || die "--rate $rate: as 200mbit, 1gbit or 500kbit"

trap 'remove_run $$' EXIT
trap 'stop TERM 129' HUP
trap 'stop INT 130' INT
trap 'stop TERM 143' TERM
check_tools
run "$@"
