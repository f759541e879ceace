/* Written by go test ./verbs/abi -update: C lays out the structures of urdma_abi.h
 * as Go does, or nothing that includes this compiles. */
#include <stddef.h>

#include "urdma_abi.h"

_Static_assert(sizeof(struct urdma_abi_addr) == 24, "addr");
_Static_assert(offsetof(struct urdma_abi_addr, family) == 0 && sizeof(((struct urdma_abi_addr *)0)->family) == 2, "family");
_Static_assert(offsetof(struct urdma_abi_addr, port_be) == 2 && sizeof(((struct urdma_abi_addr *)0)->port_be) == 2, "port_be");
_Static_assert(offsetof(struct urdma_abi_addr, scope_id) == 4 && sizeof(((struct urdma_abi_addr *)0)->scope_id) == 4, "scope_id");
_Static_assert(offsetof(struct urdma_abi_addr, addr) == 8 && sizeof(((struct urdma_abi_addr *)0)->addr) == 16, "addr");

_Static_assert(sizeof(struct urdma_abi_header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_header, type) == 0 && sizeof(((struct urdma_abi_header *)0)->type) == 4, "type");
_Static_assert(offsetof(struct urdma_abi_header, length) == 4 && sizeof(((struct urdma_abi_header *)0)->length) == 4, "length");
_Static_assert(offsetof(struct urdma_abi_header, seq) == 8 && sizeof(((struct urdma_abi_header *)0)->seq) == 4, "seq");
_Static_assert(offsetof(struct urdma_abi_header, status) == 12 && sizeof(((struct urdma_abi_header *)0)->status) == 4, "status");

_Static_assert(sizeof(struct urdma_abi_hello) == 88, "hello");
_Static_assert(offsetof(struct urdma_abi_hello, header) == 0 && sizeof(((struct urdma_abi_hello *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_hello, abi_version) == 16 && sizeof(((struct urdma_abi_hello *)0)->abi_version) == 4, "abi_version");
_Static_assert(offsetof(struct urdma_abi_hello, pid) == 20 && sizeof(((struct urdma_abi_hello *)0)->pid) == 4, "pid");
_Static_assert(offsetof(struct urdma_abi_hello, command) == 24 && sizeof(((struct urdma_abi_hello *)0)->command) == 64, "command");

_Static_assert(sizeof(struct urdma_abi_hello_response) == 288, "hello_response");
_Static_assert(offsetof(struct urdma_abi_hello_response, header) == 0 && sizeof(((struct urdma_abi_hello_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_hello_response, abi_version) == 16 && sizeof(((struct urdma_abi_hello_response *)0)->abi_version) == 4, "abi_version");
_Static_assert(offsetof(struct urdma_abi_hello_response, num_devices) == 20 && sizeof(((struct urdma_abi_hello_response *)0)->num_devices) == 4, "num_devices");
_Static_assert(offsetof(struct urdma_abi_hello_response, doorbell_bytes) == 24 && sizeof(((struct urdma_abi_hello_response *)0)->doorbell_bytes) == 4, "doorbell_bytes");
_Static_assert(offsetof(struct urdma_abi_hello_response, workers) == 28 && sizeof(((struct urdma_abi_hello_response *)0)->workers) == 4, "workers");
_Static_assert(offsetof(struct urdma_abi_hello_response, sysfs_path) == 32 && sizeof(((struct urdma_abi_hello_response *)0)->sysfs_path) == 256, "sysfs_path");

_Static_assert(sizeof(struct urdma_abi_query_device) == 24, "query_device");
_Static_assert(offsetof(struct urdma_abi_query_device, header) == 0 && sizeof(((struct urdma_abi_query_device *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_query_device, device) == 16 && sizeof(((struct urdma_abi_query_device *)0)->device) == 4, "device");
_Static_assert(offsetof(struct urdma_abi_query_device, transport) == 20 && sizeof(((struct urdma_abi_query_device *)0)->transport) == 4, "transport");

_Static_assert(sizeof(struct urdma_abi_device) == 264, "device");
_Static_assert(offsetof(struct urdma_abi_device, header) == 0 && sizeof(((struct urdma_abi_device *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_device, name) == 16 && sizeof(((struct urdma_abi_device *)0)->name) == 64, "name");
_Static_assert(offsetof(struct urdma_abi_device, node_guid_be) == 80 && sizeof(((struct urdma_abi_device *)0)->node_guid_be) == 8, "node_guid_be");
_Static_assert(offsetof(struct urdma_abi_device, addr) == 88 && sizeof(((struct urdma_abi_device *)0)->addr) == 24, "addr");
_Static_assert(offsetof(struct urdma_abi_device, prefix_length) == 112 && sizeof(((struct urdma_abi_device *)0)->prefix_length) == 4, "prefix_length");
_Static_assert(offsetof(struct urdma_abi_device, mac) == 116 && sizeof(((struct urdma_abi_device *)0)->mac) == 6, "mac");
_Static_assert(offsetof(struct urdma_abi_device, pad0) == 122 && sizeof(((struct urdma_abi_device *)0)->pad0) == 2, "pad0");
_Static_assert(offsetof(struct urdma_abi_device, mtu) == 124 && sizeof(((struct urdma_abi_device *)0)->mtu) == 4, "mtu");
_Static_assert(offsetof(struct urdma_abi_device, transport) == 128 && sizeof(((struct urdma_abi_device *)0)->transport) == 4, "transport");
_Static_assert(offsetof(struct urdma_abi_device, node_type) == 132 && sizeof(((struct urdma_abi_device *)0)->node_type) == 4, "node_type");
_Static_assert(offsetof(struct urdma_abi_device, transport_type) == 136 && sizeof(((struct urdma_abi_device *)0)->transport_type) == 4, "transport_type");
_Static_assert(offsetof(struct urdma_abi_device, link_layer) == 140 && sizeof(((struct urdma_abi_device *)0)->link_layer) == 4, "link_layer");
_Static_assert(offsetof(struct urdma_abi_device, gid_type) == 144 && sizeof(((struct urdma_abi_device *)0)->gid_type) == 4, "gid_type");
_Static_assert(offsetof(struct urdma_abi_device, gid) == 148 && sizeof(((struct urdma_abi_device *)0)->gid) == 16, "gid");
_Static_assert(offsetof(struct urdma_abi_device, lid) == 164 && sizeof(((struct urdma_abi_device *)0)->lid) == 4, "lid");
_Static_assert(offsetof(struct urdma_abi_device, link_up) == 168 && sizeof(((struct urdma_abi_device *)0)->link_up) == 4, "link_up");
_Static_assert(offsetof(struct urdma_abi_device, max_qp) == 172 && sizeof(((struct urdma_abi_device *)0)->max_qp) == 4, "max_qp");
_Static_assert(offsetof(struct urdma_abi_device, max_qp_wr) == 176 && sizeof(((struct urdma_abi_device *)0)->max_qp_wr) == 4, "max_qp_wr");
_Static_assert(offsetof(struct urdma_abi_device, max_sge) == 180 && sizeof(((struct urdma_abi_device *)0)->max_sge) == 4, "max_sge");
_Static_assert(offsetof(struct urdma_abi_device, max_sge_rd) == 184 && sizeof(((struct urdma_abi_device *)0)->max_sge_rd) == 4, "max_sge_rd");
_Static_assert(offsetof(struct urdma_abi_device, max_inline) == 188 && sizeof(((struct urdma_abi_device *)0)->max_inline) == 4, "max_inline");
_Static_assert(offsetof(struct urdma_abi_device, max_cq) == 192 && sizeof(((struct urdma_abi_device *)0)->max_cq) == 4, "max_cq");
_Static_assert(offsetof(struct urdma_abi_device, max_cqe) == 196 && sizeof(((struct urdma_abi_device *)0)->max_cqe) == 4, "max_cqe");
_Static_assert(offsetof(struct urdma_abi_device, max_mr) == 200 && sizeof(((struct urdma_abi_device *)0)->max_mr) == 4, "max_mr");
_Static_assert(offsetof(struct urdma_abi_device, max_pd) == 204 && sizeof(((struct urdma_abi_device *)0)->max_pd) == 4, "max_pd");
_Static_assert(offsetof(struct urdma_abi_device, max_rd_atom) == 208 && sizeof(((struct urdma_abi_device *)0)->max_rd_atom) == 4, "max_rd_atom");
_Static_assert(offsetof(struct urdma_abi_device, num_comp_vectors) == 212 && sizeof(((struct urdma_abi_device *)0)->num_comp_vectors) == 4, "num_comp_vectors");
_Static_assert(offsetof(struct urdma_abi_device, version) == 216 && sizeof(((struct urdma_abi_device *)0)->version) == 4, "version");
_Static_assert(offsetof(struct urdma_abi_device, max_mr_size) == 224 && sizeof(((struct urdma_abi_device *)0)->max_mr_size) == 8, "max_mr_size");
_Static_assert(offsetof(struct urdma_abi_device, max_msg) == 232 && sizeof(((struct urdma_abi_device *)0)->max_msg) == 8, "max_msg");
_Static_assert(offsetof(struct urdma_abi_device, max_srq) == 240 && sizeof(((struct urdma_abi_device *)0)->max_srq) == 4, "max_srq");
_Static_assert(offsetof(struct urdma_abi_device, max_srq_wr) == 244 && sizeof(((struct urdma_abi_device *)0)->max_srq_wr) == 4, "max_srq_wr");
_Static_assert(offsetof(struct urdma_abi_device, max_srq_sge) == 248 && sizeof(((struct urdma_abi_device *)0)->max_srq_sge) == 4, "max_srq_sge");
_Static_assert(offsetof(struct urdma_abi_device, max_mw) == 252 && sizeof(((struct urdma_abi_device *)0)->max_mw) == 4, "max_mw");
_Static_assert(offsetof(struct urdma_abi_device, max_datagram) == 256 && sizeof(((struct urdma_abi_device *)0)->max_datagram) == 4, "max_datagram");
_Static_assert(offsetof(struct urdma_abi_device, pad1) == 260 && sizeof(((struct urdma_abi_device *)0)->pad1) == 4, "pad1");

_Static_assert(sizeof(struct urdma_abi_open_device) == 24, "open_device");
_Static_assert(offsetof(struct urdma_abi_open_device, header) == 0 && sizeof(((struct urdma_abi_open_device *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_open_device, device) == 16 && sizeof(((struct urdma_abi_open_device *)0)->device) == 4, "device");
_Static_assert(offsetof(struct urdma_abi_open_device, pad) == 20 && sizeof(((struct urdma_abi_open_device *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_handle) == 24, "handle");
_Static_assert(offsetof(struct urdma_abi_handle, header) == 0 && sizeof(((struct urdma_abi_handle *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_handle, handle) == 16 && sizeof(((struct urdma_abi_handle *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_handle, pad) == 20 && sizeof(((struct urdma_abi_handle *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_batch) == 24, "batch");
_Static_assert(offsetof(struct urdma_abi_batch, header) == 0 && sizeof(((struct urdma_abi_batch *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_batch, count) == 16 && sizeof(((struct urdma_abi_batch *)0)->count) == 4, "count");
_Static_assert(offsetof(struct urdma_abi_batch, pad) == 20 && sizeof(((struct urdma_abi_batch *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_batch_response) == 40, "batch_response");
_Static_assert(offsetof(struct urdma_abi_batch_response, header) == 0 && sizeof(((struct urdma_abi_batch_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_batch_response, done) == 16 && sizeof(((struct urdma_abi_batch_response *)0)->done) == 4, "done");
_Static_assert(offsetof(struct urdma_abi_batch_response, refused) == 20 && sizeof(((struct urdma_abi_batch_response *)0)->refused) == 4, "refused");
_Static_assert(offsetof(struct urdma_abi_batch_response, fds) == 24 && sizeof(((struct urdma_abi_batch_response *)0)->fds) == 16, "fds");

_Static_assert(sizeof(struct urdma_abi_reg_mr) == 72, "reg_mr");
_Static_assert(offsetof(struct urdma_abi_reg_mr, header) == 0 && sizeof(((struct urdma_abi_reg_mr *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_reg_mr, pd) == 16 && sizeof(((struct urdma_abi_reg_mr *)0)->pd) == 4, "pd");
_Static_assert(offsetof(struct urdma_abi_reg_mr, access) == 20 && sizeof(((struct urdma_abi_reg_mr *)0)->access) == 4, "access");
_Static_assert(offsetof(struct urdma_abi_reg_mr, addr) == 24 && sizeof(((struct urdma_abi_reg_mr *)0)->addr) == 8, "addr");
_Static_assert(offsetof(struct urdma_abi_reg_mr, length) == 32 && sizeof(((struct urdma_abi_reg_mr *)0)->length) == 8, "length");
_Static_assert(offsetof(struct urdma_abi_reg_mr, iova) == 40 && sizeof(((struct urdma_abi_reg_mr *)0)->iova) == 8, "iova");
_Static_assert(offsetof(struct urdma_abi_reg_mr, path) == 48 && sizeof(((struct urdma_abi_reg_mr *)0)->path) == 4, "path");
_Static_assert(offsetof(struct urdma_abi_reg_mr, file) == 52 && sizeof(((struct urdma_abi_reg_mr *)0)->file) == 4, "file");
_Static_assert(offsetof(struct urdma_abi_reg_mr, file_offset) == 56 && sizeof(((struct urdma_abi_reg_mr *)0)->file_offset) == 8, "file_offset");
_Static_assert(offsetof(struct urdma_abi_reg_mr, replaces) == 64 && sizeof(((struct urdma_abi_reg_mr *)0)->replaces) == 4, "replaces");
_Static_assert(offsetof(struct urdma_abi_reg_mr, pad) == 68 && sizeof(((struct urdma_abi_reg_mr *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_reg_mr_response) == 32, "reg_mr_response");
_Static_assert(offsetof(struct urdma_abi_reg_mr_response, header) == 0 && sizeof(((struct urdma_abi_reg_mr_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_reg_mr_response, handle) == 16 && sizeof(((struct urdma_abi_reg_mr_response *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_reg_mr_response, lkey) == 20 && sizeof(((struct urdma_abi_reg_mr_response *)0)->lkey) == 4, "lkey");
_Static_assert(offsetof(struct urdma_abi_reg_mr_response, rkey) == 24 && sizeof(((struct urdma_abi_reg_mr_response *)0)->rkey) == 4, "rkey");
_Static_assert(offsetof(struct urdma_abi_reg_mr_response, pad) == 28 && sizeof(((struct urdma_abi_reg_mr_response *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_mcast) == 48, "mcast");
_Static_assert(offsetof(struct urdma_abi_mcast, header) == 0 && sizeof(((struct urdma_abi_mcast *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_mcast, qp) == 16 && sizeof(((struct urdma_abi_mcast *)0)->qp) == 4, "qp");
_Static_assert(offsetof(struct urdma_abi_mcast, pad) == 20 && sizeof(((struct urdma_abi_mcast *)0)->pad) == 4, "pad");
_Static_assert(offsetof(struct urdma_abi_mcast, group) == 24 && sizeof(((struct urdma_abi_mcast *)0)->group) == 24, "group");

_Static_assert(sizeof(struct urdma_abi_alloc_mw) == 24, "alloc_mw");
_Static_assert(offsetof(struct urdma_abi_alloc_mw, header) == 0 && sizeof(((struct urdma_abi_alloc_mw *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_alloc_mw, pd) == 16 && sizeof(((struct urdma_abi_alloc_mw *)0)->pd) == 4, "pd");
_Static_assert(offsetof(struct urdma_abi_alloc_mw, type) == 20 && sizeof(((struct urdma_abi_alloc_mw *)0)->type) == 4, "type");

_Static_assert(sizeof(struct urdma_abi_alloc_mw_response) == 24, "alloc_mw_response");
_Static_assert(offsetof(struct urdma_abi_alloc_mw_response, header) == 0 && sizeof(((struct urdma_abi_alloc_mw_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_alloc_mw_response, handle) == 16 && sizeof(((struct urdma_abi_alloc_mw_response *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_alloc_mw_response, rkey) == 20 && sizeof(((struct urdma_abi_alloc_mw_response *)0)->rkey) == 4, "rkey");

_Static_assert(sizeof(struct urdma_abi_create_cq) == 32, "create_cq");
_Static_assert(offsetof(struct urdma_abi_create_cq, header) == 0 && sizeof(((struct urdma_abi_create_cq *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_create_cq, context) == 16 && sizeof(((struct urdma_abi_create_cq *)0)->context) == 4, "context");
_Static_assert(offsetof(struct urdma_abi_create_cq, channel) == 20 && sizeof(((struct urdma_abi_create_cq *)0)->channel) == 4, "channel");
_Static_assert(offsetof(struct urdma_abi_create_cq, cqe) == 24 && sizeof(((struct urdma_abi_create_cq *)0)->cqe) == 4, "cqe");
_Static_assert(offsetof(struct urdma_abi_create_cq, comp_vector) == 28 && sizeof(((struct urdma_abi_create_cq *)0)->comp_vector) == 4, "comp_vector");

_Static_assert(sizeof(struct urdma_abi_resize_cq) == 24, "resize_cq");
_Static_assert(offsetof(struct urdma_abi_resize_cq, header) == 0 && sizeof(((struct urdma_abi_resize_cq *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_resize_cq, handle) == 16 && sizeof(((struct urdma_abi_resize_cq *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_resize_cq, cqe) == 20 && sizeof(((struct urdma_abi_resize_cq *)0)->cqe) == 4, "cqe");

_Static_assert(sizeof(struct urdma_abi_cq_response) == 40, "cq_response");
_Static_assert(offsetof(struct urdma_abi_cq_response, header) == 0 && sizeof(((struct urdma_abi_cq_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cq_response, handle) == 16 && sizeof(((struct urdma_abi_cq_response *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_cq_response, entries) == 20 && sizeof(((struct urdma_abi_cq_response *)0)->entries) == 4, "entries");
_Static_assert(offsetof(struct urdma_abi_cq_response, entries_offset) == 24 && sizeof(((struct urdma_abi_cq_response *)0)->entries_offset) == 4, "entries_offset");
_Static_assert(offsetof(struct urdma_abi_cq_response, bytes) == 28 && sizeof(((struct urdma_abi_cq_response *)0)->bytes) == 4, "bytes");
_Static_assert(offsetof(struct urdma_abi_cq_response, memfd) == 32 && sizeof(((struct urdma_abi_cq_response *)0)->memfd) == 4, "memfd");
_Static_assert(offsetof(struct urdma_abi_cq_response, ring_offset) == 36 && sizeof(((struct urdma_abi_cq_response *)0)->ring_offset) == 4, "ring_offset");

_Static_assert(sizeof(struct urdma_abi_qp_cap) == 20, "qp_cap");
_Static_assert(offsetof(struct urdma_abi_qp_cap, max_send_wr) == 0 && sizeof(((struct urdma_abi_qp_cap *)0)->max_send_wr) == 4, "max_send_wr");
_Static_assert(offsetof(struct urdma_abi_qp_cap, max_recv_wr) == 4 && sizeof(((struct urdma_abi_qp_cap *)0)->max_recv_wr) == 4, "max_recv_wr");
_Static_assert(offsetof(struct urdma_abi_qp_cap, max_send_sge) == 8 && sizeof(((struct urdma_abi_qp_cap *)0)->max_send_sge) == 4, "max_send_sge");
_Static_assert(offsetof(struct urdma_abi_qp_cap, max_recv_sge) == 12 && sizeof(((struct urdma_abi_qp_cap *)0)->max_recv_sge) == 4, "max_recv_sge");
_Static_assert(offsetof(struct urdma_abi_qp_cap, max_inline) == 16 && sizeof(((struct urdma_abi_qp_cap *)0)->max_inline) == 4, "max_inline");

_Static_assert(sizeof(struct urdma_abi_create_qp) == 80, "create_qp");
_Static_assert(offsetof(struct urdma_abi_create_qp, header) == 0 && sizeof(((struct urdma_abi_create_qp *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_create_qp, pd) == 16 && sizeof(((struct urdma_abi_create_qp *)0)->pd) == 4, "pd");
_Static_assert(offsetof(struct urdma_abi_create_qp, qp_type) == 20 && sizeof(((struct urdma_abi_create_qp *)0)->qp_type) == 4, "qp_type");
_Static_assert(offsetof(struct urdma_abi_create_qp, send_cq) == 24 && sizeof(((struct urdma_abi_create_qp *)0)->send_cq) == 4, "send_cq");
_Static_assert(offsetof(struct urdma_abi_create_qp, recv_cq) == 28 && sizeof(((struct urdma_abi_create_qp *)0)->recv_cq) == 4, "recv_cq");
_Static_assert(offsetof(struct urdma_abi_create_qp, srq) == 32 && sizeof(((struct urdma_abi_create_qp *)0)->srq) == 4, "srq");
_Static_assert(offsetof(struct urdma_abi_create_qp, xrcd) == 36 && sizeof(((struct urdma_abi_create_qp *)0)->xrcd) == 4, "xrcd");
_Static_assert(offsetof(struct urdma_abi_create_qp, create_flags) == 40 && sizeof(((struct urdma_abi_create_qp *)0)->create_flags) == 4, "create_flags");
_Static_assert(offsetof(struct urdma_abi_create_qp, source_qpn) == 44 && sizeof(((struct urdma_abi_create_qp *)0)->source_qpn) == 4, "source_qpn");
_Static_assert(offsetof(struct urdma_abi_create_qp, sq_sig_all) == 48 && sizeof(((struct urdma_abi_create_qp *)0)->sq_sig_all) == 4, "sq_sig_all");
_Static_assert(offsetof(struct urdma_abi_create_qp, cap) == 52 && sizeof(((struct urdma_abi_create_qp *)0)->cap) == 20, "cap");
_Static_assert(offsetof(struct urdma_abi_create_qp, user_handle) == 72 && sizeof(((struct urdma_abi_create_qp *)0)->user_handle) == 8, "user_handle");

_Static_assert(sizeof(struct urdma_abi_queue_layout) == 16, "queue_layout");
_Static_assert(offsetof(struct urdma_abi_queue_layout, head_offset) == 0 && sizeof(((struct urdma_abi_queue_layout *)0)->head_offset) == 4, "head_offset");
_Static_assert(offsetof(struct urdma_abi_queue_layout, slots_offset) == 4 && sizeof(((struct urdma_abi_queue_layout *)0)->slots_offset) == 4, "slots_offset");
_Static_assert(offsetof(struct urdma_abi_queue_layout, entries) == 8 && sizeof(((struct urdma_abi_queue_layout *)0)->entries) == 4, "entries");
_Static_assert(offsetof(struct urdma_abi_queue_layout, stride) == 12 && sizeof(((struct urdma_abi_queue_layout *)0)->stride) == 4, "stride");

_Static_assert(sizeof(struct urdma_abi_qp_response) == 92, "qp_response");
_Static_assert(offsetof(struct urdma_abi_qp_response, header) == 0 && sizeof(((struct urdma_abi_qp_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_qp_response, handle) == 16 && sizeof(((struct urdma_abi_qp_response *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_qp_response, qpn) == 20 && sizeof(((struct urdma_abi_qp_response *)0)->qpn) == 4, "qpn");
_Static_assert(offsetof(struct urdma_abi_qp_response, cap) == 24 && sizeof(((struct urdma_abi_qp_response *)0)->cap) == 20, "cap");
_Static_assert(offsetof(struct urdma_abi_qp_response, sq) == 44 && sizeof(((struct urdma_abi_qp_response *)0)->sq) == 16, "sq");
_Static_assert(offsetof(struct urdma_abi_qp_response, rq) == 60 && sizeof(((struct urdma_abi_qp_response *)0)->rq) == 16, "rq");
_Static_assert(offsetof(struct urdma_abi_qp_response, bytes) == 76 && sizeof(((struct urdma_abi_qp_response *)0)->bytes) == 4, "bytes");
_Static_assert(offsetof(struct urdma_abi_qp_response, worker) == 80 && sizeof(((struct urdma_abi_qp_response *)0)->worker) == 4, "worker");
_Static_assert(offsetof(struct urdma_abi_qp_response, doorbell) == 84 && sizeof(((struct urdma_abi_qp_response *)0)->doorbell) == 4, "doorbell");
_Static_assert(offsetof(struct urdma_abi_qp_response, memfd) == 88 && sizeof(((struct urdma_abi_qp_response *)0)->memfd) == 4, "memfd");

_Static_assert(sizeof(struct urdma_abi_create_srq) == 48, "create_srq");
_Static_assert(offsetof(struct urdma_abi_create_srq, header) == 0 && sizeof(((struct urdma_abi_create_srq *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_create_srq, pd) == 16 && sizeof(((struct urdma_abi_create_srq *)0)->pd) == 4, "pd");
_Static_assert(offsetof(struct urdma_abi_create_srq, max_wr) == 20 && sizeof(((struct urdma_abi_create_srq *)0)->max_wr) == 4, "max_wr");
_Static_assert(offsetof(struct urdma_abi_create_srq, max_sge) == 24 && sizeof(((struct urdma_abi_create_srq *)0)->max_sge) == 4, "max_sge");
_Static_assert(offsetof(struct urdma_abi_create_srq, srq_limit) == 28 && sizeof(((struct urdma_abi_create_srq *)0)->srq_limit) == 4, "srq_limit");
_Static_assert(offsetof(struct urdma_abi_create_srq, srq_type) == 32 && sizeof(((struct urdma_abi_create_srq *)0)->srq_type) == 4, "srq_type");
_Static_assert(offsetof(struct urdma_abi_create_srq, xrcd) == 36 && sizeof(((struct urdma_abi_create_srq *)0)->xrcd) == 4, "xrcd");
_Static_assert(offsetof(struct urdma_abi_create_srq, cq) == 40 && sizeof(((struct urdma_abi_create_srq *)0)->cq) == 4, "cq");
_Static_assert(offsetof(struct urdma_abi_create_srq, pad) == 44 && sizeof(((struct urdma_abi_create_srq *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_srq_response) == 56, "srq_response");
_Static_assert(offsetof(struct urdma_abi_srq_response, header) == 0 && sizeof(((struct urdma_abi_srq_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_srq_response, handle) == 16 && sizeof(((struct urdma_abi_srq_response *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_srq_response, max_wr) == 20 && sizeof(((struct urdma_abi_srq_response *)0)->max_wr) == 4, "max_wr");
_Static_assert(offsetof(struct urdma_abi_srq_response, max_sge) == 24 && sizeof(((struct urdma_abi_srq_response *)0)->max_sge) == 4, "max_sge");
_Static_assert(offsetof(struct urdma_abi_srq_response, rq) == 28 && sizeof(((struct urdma_abi_srq_response *)0)->rq) == 16, "rq");
_Static_assert(offsetof(struct urdma_abi_srq_response, bytes) == 44 && sizeof(((struct urdma_abi_srq_response *)0)->bytes) == 4, "bytes");
_Static_assert(offsetof(struct urdma_abi_srq_response, srq_num) == 48 && sizeof(((struct urdma_abi_srq_response *)0)->srq_num) == 4, "srq_num");
_Static_assert(offsetof(struct urdma_abi_srq_response, pad) == 52 && sizeof(((struct urdma_abi_srq_response *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_open_xrcd) == 24, "open_xrcd");
_Static_assert(offsetof(struct urdma_abi_open_xrcd, header) == 0 && sizeof(((struct urdma_abi_open_xrcd *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_open_xrcd, context) == 16 && sizeof(((struct urdma_abi_open_xrcd *)0)->context) == 4, "context");
_Static_assert(offsetof(struct urdma_abi_open_xrcd, oflags) == 20 && sizeof(((struct urdma_abi_open_xrcd *)0)->oflags) == 4, "oflags");

_Static_assert(sizeof(struct urdma_abi_open_qp) == 24, "open_qp");
_Static_assert(offsetof(struct urdma_abi_open_qp, header) == 0 && sizeof(((struct urdma_abi_open_qp *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_open_qp, xrcd) == 16 && sizeof(((struct urdma_abi_open_qp *)0)->xrcd) == 4, "xrcd");
_Static_assert(offsetof(struct urdma_abi_open_qp, qp_num) == 20 && sizeof(((struct urdma_abi_open_qp *)0)->qp_num) == 4, "qp_num");

_Static_assert(sizeof(struct urdma_abi_modify_srq) == 32, "modify_srq");
_Static_assert(offsetof(struct urdma_abi_modify_srq, header) == 0 && sizeof(((struct urdma_abi_modify_srq *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_modify_srq, handle) == 16 && sizeof(((struct urdma_abi_modify_srq *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_modify_srq, mask) == 20 && sizeof(((struct urdma_abi_modify_srq *)0)->mask) == 4, "mask");
_Static_assert(offsetof(struct urdma_abi_modify_srq, max_wr) == 24 && sizeof(((struct urdma_abi_modify_srq *)0)->max_wr) == 4, "max_wr");
_Static_assert(offsetof(struct urdma_abi_modify_srq, srq_limit) == 28 && sizeof(((struct urdma_abi_modify_srq *)0)->srq_limit) == 4, "srq_limit");

_Static_assert(sizeof(struct urdma_abi_query_srq_response) == 32, "query_srq_response");
_Static_assert(offsetof(struct urdma_abi_query_srq_response, header) == 0 && sizeof(((struct urdma_abi_query_srq_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_query_srq_response, max_wr) == 16 && sizeof(((struct urdma_abi_query_srq_response *)0)->max_wr) == 4, "max_wr");
_Static_assert(offsetof(struct urdma_abi_query_srq_response, max_sge) == 20 && sizeof(((struct urdma_abi_query_srq_response *)0)->max_sge) == 4, "max_sge");
_Static_assert(offsetof(struct urdma_abi_query_srq_response, srq_limit) == 24 && sizeof(((struct urdma_abi_query_srq_response *)0)->srq_limit) == 4, "srq_limit");
_Static_assert(offsetof(struct urdma_abi_query_srq_response, pad) == 28 && sizeof(((struct urdma_abi_query_srq_response *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_qp_attr) == 128, "qp_attr");
_Static_assert(offsetof(struct urdma_abi_qp_attr, qp_state) == 0 && sizeof(((struct urdma_abi_qp_attr *)0)->qp_state) == 4, "qp_state");
_Static_assert(offsetof(struct urdma_abi_qp_attr, cur_qp_state) == 4 && sizeof(((struct urdma_abi_qp_attr *)0)->cur_qp_state) == 4, "cur_qp_state");
_Static_assert(offsetof(struct urdma_abi_qp_attr, path_mtu) == 8 && sizeof(((struct urdma_abi_qp_attr *)0)->path_mtu) == 4, "path_mtu");
_Static_assert(offsetof(struct urdma_abi_qp_attr, qkey) == 12 && sizeof(((struct urdma_abi_qp_attr *)0)->qkey) == 4, "qkey");
_Static_assert(offsetof(struct urdma_abi_qp_attr, rq_psn) == 16 && sizeof(((struct urdma_abi_qp_attr *)0)->rq_psn) == 4, "rq_psn");
_Static_assert(offsetof(struct urdma_abi_qp_attr, sq_psn) == 20 && sizeof(((struct urdma_abi_qp_attr *)0)->sq_psn) == 4, "sq_psn");
_Static_assert(offsetof(struct urdma_abi_qp_attr, dest_qp_num) == 24 && sizeof(((struct urdma_abi_qp_attr *)0)->dest_qp_num) == 4, "dest_qp_num");
_Static_assert(offsetof(struct urdma_abi_qp_attr, qp_access_flags) == 28 && sizeof(((struct urdma_abi_qp_attr *)0)->qp_access_flags) == 4, "qp_access_flags");
_Static_assert(offsetof(struct urdma_abi_qp_attr, pkey_index) == 32 && sizeof(((struct urdma_abi_qp_attr *)0)->pkey_index) == 4, "pkey_index");
_Static_assert(offsetof(struct urdma_abi_qp_attr, port_num) == 36 && sizeof(((struct urdma_abi_qp_attr *)0)->port_num) == 4, "port_num");
_Static_assert(offsetof(struct urdma_abi_qp_attr, max_rd_atomic) == 40 && sizeof(((struct urdma_abi_qp_attr *)0)->max_rd_atomic) == 4, "max_rd_atomic");
_Static_assert(offsetof(struct urdma_abi_qp_attr, max_dest_rd_atomic) == 44 && sizeof(((struct urdma_abi_qp_attr *)0)->max_dest_rd_atomic) == 4, "max_dest_rd_atomic");
_Static_assert(offsetof(struct urdma_abi_qp_attr, min_rnr_timer) == 48 && sizeof(((struct urdma_abi_qp_attr *)0)->min_rnr_timer) == 4, "min_rnr_timer");
_Static_assert(offsetof(struct urdma_abi_qp_attr, timeout) == 52 && sizeof(((struct urdma_abi_qp_attr *)0)->timeout) == 4, "timeout");
_Static_assert(offsetof(struct urdma_abi_qp_attr, retry_cnt) == 56 && sizeof(((struct urdma_abi_qp_attr *)0)->retry_cnt) == 4, "retry_cnt");
_Static_assert(offsetof(struct urdma_abi_qp_attr, rnr_retry) == 60 && sizeof(((struct urdma_abi_qp_attr *)0)->rnr_retry) == 4, "rnr_retry");
_Static_assert(offsetof(struct urdma_abi_qp_attr, dlid) == 64 && sizeof(((struct urdma_abi_qp_attr *)0)->dlid) == 4, "dlid");
_Static_assert(offsetof(struct urdma_abi_qp_attr, sgid_index) == 68 && sizeof(((struct urdma_abi_qp_attr *)0)->sgid_index) == 4, "sgid_index");
_Static_assert(offsetof(struct urdma_abi_qp_attr, dgid) == 72 && sizeof(((struct urdma_abi_qp_attr *)0)->dgid) == 16, "dgid");
_Static_assert(offsetof(struct urdma_abi_qp_attr, is_global) == 88 && sizeof(((struct urdma_abi_qp_attr *)0)->is_global) == 4, "is_global");
_Static_assert(offsetof(struct urdma_abi_qp_attr, sq_draining) == 92 && sizeof(((struct urdma_abi_qp_attr *)0)->sq_draining) == 4, "sq_draining");
_Static_assert(offsetof(struct urdma_abi_qp_attr, flow_label) == 96 && sizeof(((struct urdma_abi_qp_attr *)0)->flow_label) == 4, "flow_label");
_Static_assert(offsetof(struct urdma_abi_qp_attr, hop_limit) == 100 && sizeof(((struct urdma_abi_qp_attr *)0)->hop_limit) == 4, "hop_limit");
_Static_assert(offsetof(struct urdma_abi_qp_attr, traffic_class) == 104 && sizeof(((struct urdma_abi_qp_attr *)0)->traffic_class) == 4, "traffic_class");
_Static_assert(offsetof(struct urdma_abi_qp_attr, sl) == 108 && sizeof(((struct urdma_abi_qp_attr *)0)->sl) == 4, "sl");
_Static_assert(offsetof(struct urdma_abi_qp_attr, static_rate) == 112 && sizeof(((struct urdma_abi_qp_attr *)0)->static_rate) == 4, "static_rate");
_Static_assert(offsetof(struct urdma_abi_qp_attr, src_path_bits) == 116 && sizeof(((struct urdma_abi_qp_attr *)0)->src_path_bits) == 4, "src_path_bits");
_Static_assert(offsetof(struct urdma_abi_qp_attr, ah_port_num) == 120 && sizeof(((struct urdma_abi_qp_attr *)0)->ah_port_num) == 4, "ah_port_num");
_Static_assert(offsetof(struct urdma_abi_qp_attr, en_sqd_async_notify) == 124 && sizeof(((struct urdma_abi_qp_attr *)0)->en_sqd_async_notify) == 4, "en_sqd_async_notify");

_Static_assert(sizeof(struct urdma_abi_modify_qp) == 152, "modify_qp");
_Static_assert(offsetof(struct urdma_abi_modify_qp, header) == 0 && sizeof(((struct urdma_abi_modify_qp *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_modify_qp, handle) == 16 && sizeof(((struct urdma_abi_modify_qp *)0)->handle) == 4, "handle");
_Static_assert(offsetof(struct urdma_abi_modify_qp, mask) == 20 && sizeof(((struct urdma_abi_modify_qp *)0)->mask) == 4, "mask");
_Static_assert(offsetof(struct urdma_abi_modify_qp, attr) == 24 && sizeof(((struct urdma_abi_modify_qp *)0)->attr) == 128, "attr");

_Static_assert(sizeof(struct urdma_abi_query_qp_response) == 168, "query_qp_response");
_Static_assert(offsetof(struct urdma_abi_query_qp_response, header) == 0 && sizeof(((struct urdma_abi_query_qp_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_query_qp_response, attr) == 16 && sizeof(((struct urdma_abi_query_qp_response *)0)->attr) == 128, "attr");
_Static_assert(offsetof(struct urdma_abi_query_qp_response, cap) == 144 && sizeof(((struct urdma_abi_query_qp_response *)0)->cap) == 20, "cap");
_Static_assert(offsetof(struct urdma_abi_query_qp_response, sq_sig_all) == 164 && sizeof(((struct urdma_abi_query_qp_response *)0)->sq_sig_all) == 4, "sq_sig_all");

_Static_assert(sizeof(struct urdma_abi_inspect_response) == 24, "inspect_response");
_Static_assert(offsetof(struct urdma_abi_inspect_response, header) == 0 && sizeof(((struct urdma_abi_inspect_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_inspect_response, bytes) == 16 && sizeof(((struct urdma_abi_inspect_response *)0)->bytes) == 8, "bytes");

_Static_assert(sizeof(struct urdma_abi_capture) == 64, "capture");
_Static_assert(offsetof(struct urdma_abi_capture, header) == 0 && sizeof(((struct urdma_abi_capture *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_capture, ring_bytes) == 16 && sizeof(((struct urdma_abi_capture *)0)->ring_bytes) == 4, "ring_bytes");
_Static_assert(offsetof(struct urdma_abi_capture, snap_bytes) == 20 && sizeof(((struct urdma_abi_capture *)0)->snap_bytes) == 4, "snap_bytes");
_Static_assert(offsetof(struct urdma_abi_capture, device) == 24 && sizeof(((struct urdma_abi_capture *)0)->device) == 4, "device");
_Static_assert(offsetof(struct urdma_abi_capture, qpn) == 28 && sizeof(((struct urdma_abi_capture *)0)->qpn) == 4, "qpn");
_Static_assert(offsetof(struct urdma_abi_capture, pid) == 32 && sizeof(((struct urdma_abi_capture *)0)->pid) == 4, "pid");
_Static_assert(offsetof(struct urdma_abi_capture, flags) == 36 && sizeof(((struct urdma_abi_capture *)0)->flags) == 4, "flags");
_Static_assert(offsetof(struct urdma_abi_capture, host) == 40 && sizeof(((struct urdma_abi_capture *)0)->host) == 24, "host");

_Static_assert(sizeof(struct urdma_abi_capture_response) == 24, "capture_response");
_Static_assert(offsetof(struct urdma_abi_capture_response, header) == 0 && sizeof(((struct urdma_abi_capture_response *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_capture_response, data_offset) == 16 && sizeof(((struct urdma_abi_capture_response *)0)->data_offset) == 4, "data_offset");
_Static_assert(offsetof(struct urdma_abi_capture_response, data_bytes) == 20 && sizeof(((struct urdma_abi_capture_response *)0)->data_bytes) == 4, "data_bytes");

_Static_assert(sizeof(struct urdma_abi_capture_ring) == 128, "capture_ring");
_Static_assert(offsetof(struct urdma_abi_capture_ring, head) == 0 && sizeof(((struct urdma_abi_capture_ring *)0)->head) == 8, "head");
_Static_assert(offsetof(struct urdma_abi_capture_ring, lost) == 8 && sizeof(((struct urdma_abi_capture_ring *)0)->lost) == 8, "lost");
_Static_assert(offsetof(struct urdma_abi_capture_ring, pad0) == 16 && sizeof(((struct urdma_abi_capture_ring *)0)->pad0) == 48, "pad0");
_Static_assert(offsetof(struct urdma_abi_capture_ring, tail) == 64 && sizeof(((struct urdma_abi_capture_ring *)0)->tail) == 8, "tail");
_Static_assert(offsetof(struct urdma_abi_capture_ring, pad1) == 72 && sizeof(((struct urdma_abi_capture_ring *)0)->pad1) == 56, "pad1");

_Static_assert(sizeof(struct urdma_abi_capture_record) == 32, "capture_record");
_Static_assert(offsetof(struct urdma_abi_capture_record, bytes) == 0 && sizeof(((struct urdma_abi_capture_record *)0)->bytes) == 4, "bytes");
_Static_assert(offsetof(struct urdma_abi_capture_record, kind) == 4 && sizeof(((struct urdma_abi_capture_record *)0)->kind) == 2, "kind");
_Static_assert(offsetof(struct urdma_abi_capture_record, direction) == 6 && sizeof(((struct urdma_abi_capture_record *)0)->direction) == 2, "direction");
_Static_assert(offsetof(struct urdma_abi_capture_record, time_ns) == 8 && sizeof(((struct urdma_abi_capture_record *)0)->time_ns) == 8, "time_ns");
_Static_assert(offsetof(struct urdma_abi_capture_record, frame_bytes) == 16 && sizeof(((struct urdma_abi_capture_record *)0)->frame_bytes) == 4, "frame_bytes");
_Static_assert(offsetof(struct urdma_abi_capture_record, kept_bytes) == 20 && sizeof(((struct urdma_abi_capture_record *)0)->kept_bytes) == 4, "kept_bytes");
_Static_assert(offsetof(struct urdma_abi_capture_record, note_bytes) == 24 && sizeof(((struct urdma_abi_capture_record *)0)->note_bytes) == 4, "note_bytes");
_Static_assert(offsetof(struct urdma_abi_capture_record, device) == 28 && sizeof(((struct urdma_abi_capture_record *)0)->device) == 4, "device");

_Static_assert(sizeof(struct urdma_abi_cm_create_id) == 24, "cm_create_id");
_Static_assert(offsetof(struct urdma_abi_cm_create_id, header) == 0 && sizeof(((struct urdma_abi_cm_create_id *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_create_id, channel) == 16 && sizeof(((struct urdma_abi_cm_create_id *)0)->channel) == 4, "channel");
_Static_assert(offsetof(struct urdma_abi_cm_create_id, ps) == 20 && sizeof(((struct urdma_abi_cm_create_id *)0)->ps) == 4, "ps");

_Static_assert(sizeof(struct urdma_abi_cm_bind) == 48, "cm_bind");
_Static_assert(offsetof(struct urdma_abi_cm_bind, header) == 0 && sizeof(((struct urdma_abi_cm_bind *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_bind, id) == 16 && sizeof(((struct urdma_abi_cm_bind *)0)->id) == 4, "id");
_Static_assert(offsetof(struct urdma_abi_cm_bind, pad) == 20 && sizeof(((struct urdma_abi_cm_bind *)0)->pad) == 4, "pad");
_Static_assert(offsetof(struct urdma_abi_cm_bind, addr) == 24 && sizeof(((struct urdma_abi_cm_bind *)0)->addr) == 24, "addr");

_Static_assert(sizeof(struct urdma_abi_cm_bound) == 48, "cm_bound");
_Static_assert(offsetof(struct urdma_abi_cm_bound, header) == 0 && sizeof(((struct urdma_abi_cm_bound *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_bound, local) == 16 && sizeof(((struct urdma_abi_cm_bound *)0)->local) == 24, "local");
_Static_assert(offsetof(struct urdma_abi_cm_bound, device) == 40 && sizeof(((struct urdma_abi_cm_bound *)0)->device) == 4, "device");
_Static_assert(offsetof(struct urdma_abi_cm_bound, pad) == 44 && sizeof(((struct urdma_abi_cm_bound *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_cm_resolve_addr) == 72, "cm_resolve_addr");
_Static_assert(offsetof(struct urdma_abi_cm_resolve_addr, header) == 0 && sizeof(((struct urdma_abi_cm_resolve_addr *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_resolve_addr, id) == 16 && sizeof(((struct urdma_abi_cm_resolve_addr *)0)->id) == 4, "id");
_Static_assert(offsetof(struct urdma_abi_cm_resolve_addr, timeout_ms) == 20 && sizeof(((struct urdma_abi_cm_resolve_addr *)0)->timeout_ms) == 4, "timeout_ms");
_Static_assert(offsetof(struct urdma_abi_cm_resolve_addr, src) == 24 && sizeof(((struct urdma_abi_cm_resolve_addr *)0)->src) == 24, "src");
_Static_assert(offsetof(struct urdma_abi_cm_resolve_addr, dst) == 48 && sizeof(((struct urdma_abi_cm_resolve_addr *)0)->dst) == 24, "dst");

_Static_assert(sizeof(struct urdma_abi_cm_value) == 24, "cm_value");
_Static_assert(offsetof(struct urdma_abi_cm_value, header) == 0 && sizeof(((struct urdma_abi_cm_value *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_value, id) == 16 && sizeof(((struct urdma_abi_cm_value *)0)->id) == 4, "id");
_Static_assert(offsetof(struct urdma_abi_cm_value, value) == 20 && sizeof(((struct urdma_abi_cm_value *)0)->value) == 4, "value");

_Static_assert(sizeof(struct urdma_abi_cm_param) == 276, "cm_param");
_Static_assert(offsetof(struct urdma_abi_cm_param, qp) == 0 && sizeof(((struct urdma_abi_cm_param *)0)->qp) == 4, "qp");
_Static_assert(offsetof(struct urdma_abi_cm_param, qp_num) == 4 && sizeof(((struct urdma_abi_cm_param *)0)->qp_num) == 4, "qp_num");
_Static_assert(offsetof(struct urdma_abi_cm_param, qkey) == 8 && sizeof(((struct urdma_abi_cm_param *)0)->qkey) == 4, "qkey");
_Static_assert(offsetof(struct urdma_abi_cm_param, responder_resources) == 12 && sizeof(((struct urdma_abi_cm_param *)0)->responder_resources) == 1, "responder_resources");
_Static_assert(offsetof(struct urdma_abi_cm_param, initiator_depth) == 13 && sizeof(((struct urdma_abi_cm_param *)0)->initiator_depth) == 1, "initiator_depth");
_Static_assert(offsetof(struct urdma_abi_cm_param, flow_control) == 14 && sizeof(((struct urdma_abi_cm_param *)0)->flow_control) == 1, "flow_control");
_Static_assert(offsetof(struct urdma_abi_cm_param, retry_count) == 15 && sizeof(((struct urdma_abi_cm_param *)0)->retry_count) == 1, "retry_count");
_Static_assert(offsetof(struct urdma_abi_cm_param, rnr_retry_count) == 16 && sizeof(((struct urdma_abi_cm_param *)0)->rnr_retry_count) == 1, "rnr_retry_count");
_Static_assert(offsetof(struct urdma_abi_cm_param, srq) == 17 && sizeof(((struct urdma_abi_cm_param *)0)->srq) == 1, "srq");
_Static_assert(offsetof(struct urdma_abi_cm_param, private_data_len) == 18 && sizeof(((struct urdma_abi_cm_param *)0)->private_data_len) == 2, "private_data_len");
_Static_assert(offsetof(struct urdma_abi_cm_param, private_data) == 20 && sizeof(((struct urdma_abi_cm_param *)0)->private_data) == 256, "private_data");

_Static_assert(sizeof(struct urdma_abi_cm_conn) == 300, "cm_conn");
_Static_assert(offsetof(struct urdma_abi_cm_conn, header) == 0 && sizeof(((struct urdma_abi_cm_conn *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_conn, id) == 16 && sizeof(((struct urdma_abi_cm_conn *)0)->id) == 4, "id");
_Static_assert(offsetof(struct urdma_abi_cm_conn, pad) == 20 && sizeof(((struct urdma_abi_cm_conn *)0)->pad) == 4, "pad");
_Static_assert(offsetof(struct urdma_abi_cm_conn, param) == 24 && sizeof(((struct urdma_abi_cm_conn *)0)->param) == 276, "param");

_Static_assert(sizeof(struct urdma_abi_cm_set_option) == 32, "cm_set_option");
_Static_assert(offsetof(struct urdma_abi_cm_set_option, header) == 0 && sizeof(((struct urdma_abi_cm_set_option *)0)->header) == 16, "header");
_Static_assert(offsetof(struct urdma_abi_cm_set_option, id) == 16 && sizeof(((struct urdma_abi_cm_set_option *)0)->id) == 4, "id");
_Static_assert(offsetof(struct urdma_abi_cm_set_option, level) == 20 && sizeof(((struct urdma_abi_cm_set_option *)0)->level) == 4, "level");
_Static_assert(offsetof(struct urdma_abi_cm_set_option, optname) == 24 && sizeof(((struct urdma_abi_cm_set_option *)0)->optname) == 4, "optname");
_Static_assert(offsetof(struct urdma_abi_cm_set_option, value) == 28 && sizeof(((struct urdma_abi_cm_set_option *)0)->value) == 4, "value");

_Static_assert(sizeof(struct urdma_abi_comp_event) == 8, "comp_event");
_Static_assert(offsetof(struct urdma_abi_comp_event, cq) == 0 && sizeof(((struct urdma_abi_comp_event *)0)->cq) == 4, "cq");
_Static_assert(offsetof(struct urdma_abi_comp_event, pad) == 4 && sizeof(((struct urdma_abi_comp_event *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_async_event) == 8, "async_event");
_Static_assert(offsetof(struct urdma_abi_async_event, event_type) == 0 && sizeof(((struct urdma_abi_async_event *)0)->event_type) == 4, "event_type");
_Static_assert(offsetof(struct urdma_abi_async_event, handle) == 4 && sizeof(((struct urdma_abi_async_event *)0)->handle) == 4, "handle");

_Static_assert(sizeof(struct urdma_abi_cm_event) == 348, "cm_event");
_Static_assert(offsetof(struct urdma_abi_cm_event, event) == 0 && sizeof(((struct urdma_abi_cm_event *)0)->event) == 4, "event");
_Static_assert(offsetof(struct urdma_abi_cm_event, status) == 4 && sizeof(((struct urdma_abi_cm_event *)0)->status) == 4, "status");
_Static_assert(offsetof(struct urdma_abi_cm_event, id) == 8 && sizeof(((struct urdma_abi_cm_event *)0)->id) == 4, "id");
_Static_assert(offsetof(struct urdma_abi_cm_event, child) == 12 && sizeof(((struct urdma_abi_cm_event *)0)->child) == 4, "child");
_Static_assert(offsetof(struct urdma_abi_cm_event, device) == 16 && sizeof(((struct urdma_abi_cm_event *)0)->device) == 4, "device");
_Static_assert(offsetof(struct urdma_abi_cm_event, pad) == 20 && sizeof(((struct urdma_abi_cm_event *)0)->pad) == 4, "pad");
_Static_assert(offsetof(struct urdma_abi_cm_event, local) == 24 && sizeof(((struct urdma_abi_cm_event *)0)->local) == 24, "local");
_Static_assert(offsetof(struct urdma_abi_cm_event, peer) == 48 && sizeof(((struct urdma_abi_cm_event *)0)->peer) == 24, "peer");
_Static_assert(offsetof(struct urdma_abi_cm_event, param) == 72 && sizeof(((struct urdma_abi_cm_event *)0)->param) == 276, "param");

_Static_assert(sizeof(struct urdma_abi_doorbells) == 4096, "doorbells");
_Static_assert(offsetof(struct urdma_abi_doorbells, summary) == 0 && sizeof(((struct urdma_abi_doorbells *)0)->summary) == 8, "summary");
_Static_assert(offsetof(struct urdma_abi_doorbells, poller) == 8 && sizeof(((struct urdma_abi_doorbells *)0)->poller) == 4, "poller");
_Static_assert(offsetof(struct urdma_abi_doorbells, waits) == 12 && sizeof(((struct urdma_abi_doorbells *)0)->waits) == 4, "waits");
_Static_assert(offsetof(struct urdma_abi_doorbells, pad0) == 16 && sizeof(((struct urdma_abi_doorbells *)0)->pad0) == 48, "pad0");
_Static_assert(offsetof(struct urdma_abi_doorbells, sleeping) == 64 && sizeof(((struct urdma_abi_doorbells *)0)->sleeping) == 4, "sleeping");
_Static_assert(offsetof(struct urdma_abi_doorbells, yield_post) == 68 && sizeof(((struct urdma_abi_doorbells *)0)->yield_post) == 4, "yield_post");
_Static_assert(offsetof(struct urdma_abi_doorbells, yield_poll) == 72 && sizeof(((struct urdma_abi_doorbells *)0)->yield_poll) == 4, "yield_poll");
_Static_assert(offsetof(struct urdma_abi_doorbells, core) == 76 && sizeof(((struct urdma_abi_doorbells *)0)->core) == 4, "core");
_Static_assert(offsetof(struct urdma_abi_doorbells, yield_alone) == 80 && sizeof(((struct urdma_abi_doorbells *)0)->yield_alone) == 4, "yield_alone");
_Static_assert(offsetof(struct urdma_abi_doorbells, pad1) == 84 && sizeof(((struct urdma_abi_doorbells *)0)->pad1) == 44, "pad1");
_Static_assert(offsetof(struct urdma_abi_doorbells, bits) == 128 && sizeof(((struct urdma_abi_doorbells *)0)->bits) == 512, "bits");
_Static_assert(offsetof(struct urdma_abi_doorbells, pad2) == 640 && sizeof(((struct urdma_abi_doorbells *)0)->pad2) == 3456, "pad2");

_Static_assert(sizeof(struct urdma_abi_sq_ring) == 128, "sq_ring");
_Static_assert(offsetof(struct urdma_abi_sq_ring, prod) == 0 && sizeof(((struct urdma_abi_sq_ring *)0)->prod) == 4, "prod");
_Static_assert(offsetof(struct urdma_abi_sq_ring, pad0) == 4 && sizeof(((struct urdma_abi_sq_ring *)0)->pad0) == 60, "pad0");
_Static_assert(offsetof(struct urdma_abi_sq_ring, cons) == 64 && sizeof(((struct urdma_abi_sq_ring *)0)->cons) == 4, "cons");
_Static_assert(offsetof(struct urdma_abi_sq_ring, failed) == 68 && sizeof(((struct urdma_abi_sq_ring *)0)->failed) == 4, "failed");
_Static_assert(offsetof(struct urdma_abi_sq_ring, first_failed) == 72 && sizeof(((struct urdma_abi_sq_ring *)0)->first_failed) == 4, "first_failed");
_Static_assert(offsetof(struct urdma_abi_sq_ring, pad1) == 76 && sizeof(((struct urdma_abi_sq_ring *)0)->pad1) == 52, "pad1");

_Static_assert(sizeof(struct urdma_abi_rq_ring) == 128, "rq_ring");
_Static_assert(offsetof(struct urdma_abi_rq_ring, prod) == 0 && sizeof(((struct urdma_abi_rq_ring *)0)->prod) == 4, "prod");
_Static_assert(offsetof(struct urdma_abi_rq_ring, pad0) == 4 && sizeof(((struct urdma_abi_rq_ring *)0)->pad0) == 60, "pad0");
_Static_assert(offsetof(struct urdma_abi_rq_ring, cons) == 64 && sizeof(((struct urdma_abi_rq_ring *)0)->cons) == 4, "cons");
_Static_assert(offsetof(struct urdma_abi_rq_ring, pad1) == 68 && sizeof(((struct urdma_abi_rq_ring *)0)->pad1) == 60, "pad1");

_Static_assert(sizeof(struct urdma_abi_sge) == 16, "sge");
_Static_assert(offsetof(struct urdma_abi_sge, addr) == 0 && sizeof(((struct urdma_abi_sge *)0)->addr) == 8, "addr");
_Static_assert(offsetof(struct urdma_abi_sge, length) == 8 && sizeof(((struct urdma_abi_sge *)0)->length) == 4, "length");
_Static_assert(offsetof(struct urdma_abi_sge, lkey) == 12 && sizeof(((struct urdma_abi_sge *)0)->lkey) == 4, "lkey");

_Static_assert(sizeof(struct urdma_abi_sqe) == 64, "sqe");
_Static_assert(offsetof(struct urdma_abi_sqe, wr_id) == 0 && sizeof(((struct urdma_abi_sqe *)0)->wr_id) == 8, "wr_id");
_Static_assert(offsetof(struct urdma_abi_sqe, opcode) == 8 && sizeof(((struct urdma_abi_sqe *)0)->opcode) == 4, "opcode");
_Static_assert(offsetof(struct urdma_abi_sqe, flags) == 12 && sizeof(((struct urdma_abi_sqe *)0)->flags) == 4, "flags");
_Static_assert(offsetof(struct urdma_abi_sqe, imm_or_stag) == 16 && sizeof(((struct urdma_abi_sqe *)0)->imm_or_stag) == 4, "imm_or_stag");
_Static_assert(offsetof(struct urdma_abi_sqe, num_sge) == 20 && sizeof(((struct urdma_abi_sqe *)0)->num_sge) == 4, "num_sge");
_Static_assert(offsetof(struct urdma_abi_sqe, inline_length) == 24 && sizeof(((struct urdma_abi_sqe *)0)->inline_length) == 4, "inline_length");
_Static_assert(offsetof(struct urdma_abi_sqe, rkey) == 28 && sizeof(((struct urdma_abi_sqe *)0)->rkey) == 4, "rkey");
_Static_assert(offsetof(struct urdma_abi_sqe, remote_addr) == 32 && sizeof(((struct urdma_abi_sqe *)0)->remote_addr) == 8, "remote_addr");
_Static_assert(offsetof(struct urdma_abi_sqe, compare_add) == 40 && sizeof(((struct urdma_abi_sqe *)0)->compare_add) == 8, "compare_add");
_Static_assert(offsetof(struct urdma_abi_sqe, swap) == 48 && sizeof(((struct urdma_abi_sqe *)0)->swap) == 8, "swap");
_Static_assert(offsetof(struct urdma_abi_sqe, remote_srqn) == 56 && sizeof(((struct urdma_abi_sqe *)0)->remote_srqn) == 4, "remote_srqn");
_Static_assert(offsetof(struct urdma_abi_sqe, pad) == 60 && sizeof(((struct urdma_abi_sqe *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_rqe) == 16, "rqe");
_Static_assert(offsetof(struct urdma_abi_rqe, wr_id) == 0 && sizeof(((struct urdma_abi_rqe *)0)->wr_id) == 8, "wr_id");
_Static_assert(offsetof(struct urdma_abi_rqe, num_sge) == 8 && sizeof(((struct urdma_abi_rqe *)0)->num_sge) == 4, "num_sge");
_Static_assert(offsetof(struct urdma_abi_rqe, pad) == 12 && sizeof(((struct urdma_abi_rqe *)0)->pad) == 4, "pad");

_Static_assert(sizeof(struct urdma_abi_cq_ring) == 256, "cq_ring");
_Static_assert(offsetof(struct urdma_abi_cq_ring, prod) == 0 && sizeof(((struct urdma_abi_cq_ring *)0)->prod) == 4, "prod");
_Static_assert(offsetof(struct urdma_abi_cq_ring, pad0) == 4 && sizeof(((struct urdma_abi_cq_ring *)0)->pad0) == 60, "pad0");
_Static_assert(offsetof(struct urdma_abi_cq_ring, cons) == 64 && sizeof(((struct urdma_abi_cq_ring *)0)->cons) == 4, "cons");
_Static_assert(offsetof(struct urdma_abi_cq_ring, pad1) == 68 && sizeof(((struct urdma_abi_cq_ring *)0)->pad1) == 60, "pad1");
_Static_assert(offsetof(struct urdma_abi_cq_ring, arm) == 128 && sizeof(((struct urdma_abi_cq_ring *)0)->arm) == 4, "arm");
_Static_assert(offsetof(struct urdma_abi_cq_ring, told) == 132 && sizeof(((struct urdma_abi_cq_ring *)0)->told) == 4, "told");
_Static_assert(offsetof(struct urdma_abi_cq_ring, pad2) == 136 && sizeof(((struct urdma_abi_cq_ring *)0)->pad2) == 56, "pad2");
_Static_assert(offsetof(struct urdma_abi_cq_ring, overrun) == 192 && sizeof(((struct urdma_abi_cq_ring *)0)->overrun) == 4, "overrun");
_Static_assert(offsetof(struct urdma_abi_cq_ring, pad3) == 196 && sizeof(((struct urdma_abi_cq_ring *)0)->pad3) == 60, "pad3");

_Static_assert(sizeof(struct urdma_abi_cqe) == 64, "cqe");
_Static_assert(offsetof(struct urdma_abi_cqe, wr_id) == 0 && sizeof(((struct urdma_abi_cqe *)0)->wr_id) == 8, "wr_id");
_Static_assert(offsetof(struct urdma_abi_cqe, status) == 8 && sizeof(((struct urdma_abi_cqe *)0)->status) == 4, "status");
_Static_assert(offsetof(struct urdma_abi_cqe, opcode) == 12 && sizeof(((struct urdma_abi_cqe *)0)->opcode) == 4, "opcode");
_Static_assert(offsetof(struct urdma_abi_cqe, vendor_err) == 16 && sizeof(((struct urdma_abi_cqe *)0)->vendor_err) == 4, "vendor_err");
_Static_assert(offsetof(struct urdma_abi_cqe, byte_len) == 20 && sizeof(((struct urdma_abi_cqe *)0)->byte_len) == 4, "byte_len");
_Static_assert(offsetof(struct urdma_abi_cqe, imm_or_stag) == 24 && sizeof(((struct urdma_abi_cqe *)0)->imm_or_stag) == 4, "imm_or_stag");
_Static_assert(offsetof(struct urdma_abi_cqe, qp_num) == 28 && sizeof(((struct urdma_abi_cqe *)0)->qp_num) == 4, "qp_num");
_Static_assert(offsetof(struct urdma_abi_cqe, src_qp) == 32 && sizeof(((struct urdma_abi_cqe *)0)->src_qp) == 4, "src_qp");
_Static_assert(offsetof(struct urdma_abi_cqe, wc_flags) == 36 && sizeof(((struct urdma_abi_cqe *)0)->wc_flags) == 4, "wc_flags");
_Static_assert(offsetof(struct urdma_abi_cqe, timestamp) == 40 && sizeof(((struct urdma_abi_cqe *)0)->timestamp) == 8, "timestamp");
_Static_assert(offsetof(struct urdma_abi_cqe, user_handle) == 48 && sizeof(((struct urdma_abi_cqe *)0)->user_handle) == 8, "user_handle");
_Static_assert(offsetof(struct urdma_abi_cqe, index) == 56 && sizeof(((struct urdma_abi_cqe *)0)->index) == 4, "index");
_Static_assert(offsetof(struct urdma_abi_cqe, source_lid) == 60 && sizeof(((struct urdma_abi_cqe *)0)->source_lid) == 4, "source_lid");
