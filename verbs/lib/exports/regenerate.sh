#!/bin/sh
# Writes the lists in this directory anew from the rdma-core of this machine: what
# libibverbs and librdmacm export publicly, name@VERSION, and the inline functions of
# verbs.h and rdma_verbs.h, each with the operation of struct verbs_context that it
# goes through, or "-". They were made on Debian 12, with rdma-core 44.
set -eu
cd "$(dirname "$0")"
for name in libibverbs librdmacm; do
	nm -D --defined-only --with-symbol-versions "$(gcc -print-file-name=$name.so)" |
		sed -n 's/.* [TWiDB] \(.*\)$/\1/p' | sed 's/@@/@/' | grep '@' | grep -v '@IBVERBS_PRIVATE_' | LC_ALL=C sort >$name.list
done
# A function begins in the first column with "static inline" and ends with "}" there.
cat /usr/include/infiniband/verbs.h /usr/include/rdma/rdma_verbs.h | awk '
/^static inline/ { text = ""; inside = 1 }
inside { text = text " " $0 }
inside && /^}/ {
	inside = 0
	name = text
	sub(/\(.*/, "", name)
	sub(/.*[ *]/, "", name)
	operation = "-"
	if (match(text, /verbs_get_ctx_op\([^,]*,[ \t]*[a-z_]+/)) {
		operation = substr(text, RSTART, RLENGTH)
		sub(/.*,[ \t]*/, "", operation)
	}
	if (name ~ /^(ibv|rdma)_/)
		print name, operation
}' | LC_ALL=C sort >inlines.list
