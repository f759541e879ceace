#!/bin/sh
# Prints a linker script that defines what libibverbs exports to rdma-core's
# drivers alone, under the same version nodes; see provider.c.
#
#   private.sh LIBIBVERBS
set -eu
nm -D --defined-only --with-symbol-versions "$1" | awk '
BEGIN {
	# What Debian 13 has more than Debian 12, for a library that runs on a later release than it is built on.
	later = "ibv_cmd_create_cq_ex2 ibv_wr_opcode_str"
}
{ split($3, part, "@+") }
part[2] !~ /^IBVERBS_PRIVATE_/ { next }
{
	seen[part[1]] = 1
	nodes[part[2]] = nodes[part[2]] " " part[1] ";"
	if (part[1] == "ibv_query_gid_type") # ours, see liburdma.map
		next
	print part[1] " = urdma_provider_" ($2 ~ /[TtWi]/ ? "call" : "data") ";"
}
END {
	for (i = split(later, names, " "); i > 0; i--)
		if (!(names[i] in seen)) {
			nodes["IBVERBS_PRIVATE_34"] = nodes["IBVERBS_PRIVATE_34"] " " names[i] ";"
			print names[i] " = urdma_provider_call;"
		}
	for (node in nodes)
		print "VERSION { " node " { global:" nodes[node] " }; }"
}'
