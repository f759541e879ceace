#!/bin/sh
# Prints where the processor time of RDMA Writes goes, as the tables of docs/design/cost.md. make cost runs it as root.
#
#   bench/cost/cost.sh BUILD [WIRE]      BUILD has urdma-bench and what it runs; WIRE is a regular expression
set -eu
here=$(dirname "$0")
build=$1
command -v perf >/dev/null || { echo "$0: perf is missing (Debian: linux-perf)" >&2; exit 1; }
rate=1499 # samples a second of each processor
out=$build/cost
mkdir -p "$out"

# The bench runs copies of these, which no longer exist when perf looks for their symbols. perf finds them by build
# id.
for program in urdmad liburdma.so bytes; do
	perf buildid-cache --add "$build/$program" 2>/dev/null || true
done

# count MEASURE FLOOR FILE: the columns of a measure of urdma-bench, or if FLOOR is a program, its column. All
# processors are recorded, because counting for each thread makes every yield slow; count.awk leaves out other
# processes.
count() {
	: >"$out/$3"
	[ -n "$1" ] || return 0
	seconds=4
	[ -z "$2" ] || seconds=1 # most floors run for a second at most
	perf record --buildid-mmap -q -a -F $rate -g -o "$out/perf.data" -- \
		sh -c 'echo $$ >"$0/pid"; exec "$@"' "$out" "$build/urdma-bench" --build "$build" --rounds 1 \
		--seconds $seconds --out "$out" --only "^$(echo "$1" | sed 's/[()]/\\&/g')\$" >"$out/bench.log" 2>&1
	# The bench prints "round 1 of 1 … MEASURE: 5.9 Gb/s".
	perf script -i "$out/perf.data" --show-task-events -F comm,pid,ip,sym 2>/dev/null | awk -f "$here/count.awk" \
		-v root="$(cat "$out/pid")" -v floor="$2" -v rate=$rate -v seconds=$seconds \
		-v moved="$(sed -n 's/^round 1 .*: \([0-9.e+]*\) \([GM]b*\/s\)$/\1 \2/p' "$out/bench.log")" >"$out/$3"
}

while IFS='|' read -r wire large floor small; do
	echo "$wire" | grep -qE "${2:-.}" || continue
	case $floor in
	*iperf3*) program=iperf3 ;;
	*bench/bytes*) program=bytes ;;
	*) program=urdma-bench ;;
	esac
	count "$large: Writes of 64 KiB" '' large
	count "$floor" $program floor
	count "${small:+$small: Writes of 64 B}" '' small
	printf '## %s\n' "$wire"
	# A row of zeros is left out.
	paste -d'|' "$out/large" "$out/floor" "$out/small" |
		awk -F'|' 'NR <= 2 || $2 + $3 + $5 + $7 + $8 >= 1 { print "| " $1, $2, $3, $5, $7, $8 " |" }' OFS=' | '
	echo
done <<'WIRES'
loopback|loopback|one thread copying 64 KiB|loopback
memif 1,500|memif 1,500|no protocol, frames of 1,514 bytes (bench/bytes)|memif 1,500
memif 9,000|memif 9,000|no protocol, frames of 9,014 bytes (bench/bytes)|
udp 1,500|udp over veth 1,500|no protocol, datagrams over veth 1,500 (bench/bytes)|udp over veth
udp 9,000|udp over veth 9,000|no protocol, datagrams over veth 9,000 (bench/bytes)|
iWARP over TCP 1,500|iWARP over veth 1,500|kernel TCP over veth 1,500 (iperf3)|iWARP over veth
iWARP over TCP 9,000|iWARP over veth 9,000|kernel TCP over veth 9,000 (iperf3)|
RoCEv2 over UDP 1,500|RoCEv2 over udp 1,500|no protocol, datagrams over veth 1,500 (bench/bytes)|RoCEv2 over udp
RoCEv2 over UDP 9,000|RoCEv2 over udp 9,000|no protocol, datagrams over veth 9,000 (bench/bytes)|
WIRES
