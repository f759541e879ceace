# Adds up the samples of "perf script --show-task-events -F comm,pid,ip,sym" by kind of work, and prints a line for
# each kind: its name and a column for the sender, one for the receiver; or one for the floor.
# Variables: root (pid of the bench: it and its children count), floor (its program; empty: none), moved ("5.9 Gb/s"
# or "1.2 M/s"), rate (samples a second), seconds.

BEGIN {
	kinds = split("posts|polls|queue pairs, memory|protocol|checksums|copying|headers, frames|port|" \
		"worker, runtime of Go|kernel: sending|kernel: receiving|kernel: copying|kernel: entry, epoll|" \
		"yields, sleeps: programs|yields, sleeps: urdmads|other", kind, "|")
	descends[root] = 1
}

# The innermost function determines the kind of work. The first matching pattern counts.
function byUser(symbol) {
	if (command == "ib_write_bw") return symbol ~ /post|bell|announce|queue_slot|queue_publish/ ? "posts" : "polls"
	if (symbol ~ /memmove|memcpy|memclr|^place/) return "copying"
	if (symbol ~ /crc32|ieeeCLMUL|castagnoli|[Cc]hecksum|Sums|^sync\.\(\*Once\)/) return "checksums"
	if (symbol ~ /urdmad\/core\/(qp|mem|datagram|samehost)/) return "queue pairs, memory"
	if (symbol ~ /urdmad\/core\/(trp|reliable|rdmap|mpa|roce|rc|steer|cm)[.]/) return "protocol"
	if (symbol ~ /urdmad\/core\/netif|urdma\/wire/) return "headers, frames"
	if (symbol ~ /urdma\/dpdk|^rte_/) return "port"
	if (symbol ~ /[Ss]yscall/) return "kernel: entry, epoll"
	return symbol ~ /urdmad\/core|verbs\/ring|^(runtime|net|time|mem|internal|type)/ ? "worker, runtime of Go" : "other"
}

# In the kernel, the innermost function and the system call.
function byKernel(symbol) {
	if (symbol ~ /^_copy_(from|to)_iter|^copy_user|^rep_movs|^memcpy/) return "kernel: copying"
	if (chain ~ /sys_(send|write)|tcp_sendmsg/) return "kernel: sending"
	if (chain ~ /sys_(recv|read)|tcp_recvmsg/) return "kernel: receiving"
	if (chain ~ /epoll/) return "kernel: entry, epoll"
	if (chain ~ /yield|nanosleep|poll|futex/) return "yields, sleeps: " (command == "urdmad" ? "urdmads" : "programs")
	return symbol ~ /^(do_syscall_64|entry_SYSCALL|exit_to_user|x64_sys_call)/ ? "kernel: entry, epoll" : "other"
}

# urdmad's start is left out.
function sample() {
	if (leaf != "" && process in descends && chain !~ / main\.runDaemon /) {
		count[process, inKernel ? byKernel(leaf) : byUser(leaf)]++
		all[process]++
		name[process] = command
	}
	leaf = ""
}

/PERF_RECORD_FORK/ {
	split($NF, id, /[^0-9]+/)  # child and its thread, parent and its thread
	if (id[4] in descends) descends[id[2]] = 1
	next
}
/PERF_RECORD_/ { next }
/^[^ \t]/ { sample(); command = $1; process = $NF; chain = " "; next }
NF > 0 {
	if (leaf == "") { leaf = $2; inKernel = $1 ~ /^ffff/ }
	chain = chain $2 " "
}

# side returns the column of a process; none if it hardly used the processor. The receiving host's urdmad and program
# begin first.
function side(p,    q) {
	if (all[p] <= most[name[p]] / 20) return ""
	if (floor) return name[p] == floor ? 1 : ""
	if (name[p] != "urdmad" && name[p] != "ib_write_bw") return ""
	for (q in all)
		if (name[q] == name[p] && all[q] > most[name[p]] / 20 && q + 0 > p + 0) return 2
	return 1  # also loopback's only urdmad
}

END {
	sample()
	width = floor ? 1 : 2
	split(moved, m, " ")
	units = m[1] * seconds / (m[2] == "Gb/s" ? 8 : 1)  # GB, or millions of messages
	print "|" (floor ? "floor, " moved : "sender, " moved "|receiver")
	print "---|---" (width > 1 ? "|---" : "")
	for (p in all) if (all[p] > most[name[p]]) most[name[p]] = all[p]
	for (p in all)
		if ((s = side(p)) != "")
			for (i = 1; i <= kinds; i++) {
				sum[kind[i], s] += count[p, kind[i]]
				sum["all", s] += count[p, kind[i]]
			}
	kind[++kinds] = "all"
	for (i = 1; i <= kinds; i++) {
		line = kind[i]
		for (s = 1; s <= width; s++)
			line = line "|" (units ? sprintf("%.0f", sum[kind[i], s] * 1e3 / rate / units) : "")
		print line
	}
}
